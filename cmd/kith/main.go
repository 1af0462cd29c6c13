package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"kith/internal/daemon"
	"kith/sitesched/executor"
)

// daemonArgument makes this program a kithd, so that "kith demo" needs nothing
// but itself.
const daemonArgument = "__kithd"

func main() {
	// The sites of a demo are this very program, and so may be their shims.
	if isShim, code := executor.ShimMain(os.Args); isShim {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == daemonArgument {
		os.Exit(daemon.Main(context.Background(), os.Args[2:], os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks the verb to end; the next one ends the process.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
