// Kith-wan carries the traffic between the sites of a testbed, as slowly and
// unreliably as it is told to; see package wan.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"kith/testbed/check/wan"
)

func main() {
	path := flag.String("config", "/etc/kith/wan.toml", "configuration of the links")
	do := flag.String("do", "", "send this command to the control address instead, and print the answer")
	flag.Parse()
	if err := run(*path, *do); err != nil {
		fmt.Fprintln(os.Stderr, "kith-wan:", err)
		os.Exit(1)
	}
}

func run(path, do string) error {
	cfg, err := wan.ReadConfig(path)
	if err != nil {
		return err
	}
	if do != "" {
		answer, err := wan.Ask(cfg.Control, do)
		fmt.Print(answer)
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	proxy, err := wan.Start(cfg, slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	<-ctx.Done()
	return proxy.Close()
}
