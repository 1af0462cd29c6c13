package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	if os.Getenv("GOMAXPROCS") == "" {
		// One question to a site is done sooner where no other thread is woken
		// for parts of it; see [allProcessors].
		runtime.GOMAXPROCS(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks the verb to end; the next one ends the process.
	context.AfterFunc(ctx, stop)
	c := newClient(os.Stdin, os.Stdout, os.Stderr)
	c.exits = true
	os.Exit(c.run(ctx, os.Args[1:]))
}

// allProcessors lets what moves files or simulates use the whole machine again.
func allProcessors() { runtime.SetDefaultGOMAXPROCS() }
