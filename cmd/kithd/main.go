// Kithd is the daemon of a Kith site.
package main

import (
	"context"
	"os"

	"kith/cmd/kithd/daemon"
	"kith/sitesched/executor"
)

func main() {
	// A job's shim may be this very program; see package executor.
	if isShim, code := executor.ShimMain(os.Args); isShim {
		os.Exit(code)
	}
	os.Exit(daemon.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
