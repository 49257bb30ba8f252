module github.com/wherryproject/wherry/toolbox

go 1.26.0

require (
	github.com/benhoyt/goawk v1.31.0
	github.com/creack/pty v1.1.24
	github.com/itchyny/gojq v0.12.20
	github.com/pmezard/go-difflib v1.0.0
	golang.org/x/net v0.61.0
	golang.org/x/sys v0.49.0
	mvdan.cc/sh/v3 v3.14.1
)

require (
	github.com/itchyny/timefmt-go v0.1.9 // indirect
	golang.org/x/term v0.47.0 // indirect
)
