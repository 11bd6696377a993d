module form

go 1.21
