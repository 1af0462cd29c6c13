package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"kith/testbed/local"
)

func main() {
	// The sites of a demo are this very program, and so are the shims of their jobs.
	if handled, code := local.Main(os.Args); handled {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks the verb to end; the next one ends the process.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
