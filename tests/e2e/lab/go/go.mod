module fetch

go 1.19
