module weir.bench/client-go

go 1.22
