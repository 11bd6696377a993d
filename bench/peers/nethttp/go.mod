module weir.bench/nethttp

go 1.24
