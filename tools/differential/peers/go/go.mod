module weir.differential/reporter

go 1.22
