// Package inprocess lets a program be the sites of its own federations: it then
// needs no other program, but has a whole daemon in it. Tests and kith-lab use
// it; kith, which is to start fast, does not.
package inprocess

import (
	"context"
	"os"

	"kith/cmd/kithd/daemon"
	"kith/sitesched/executor"
	"kith/testbed/local"
)

// daemonArgument makes a program that begins with [Main] a kithd.
const daemonArgument = "__kithd"

// Main makes the calling program able to be the sites of a federation of
// package local. A program calls it first of all, and exits with the code if
// handled is true: then it was started as a site or as the shim of a site's
// job, and has been that.
func Main(args []string) (handled bool, code int) {
	if isShim, code := executor.ShimMain(args); isShim {
		return true, code
	}
	if len(args) > 1 && args[1] == daemonArgument {
		return true, daemon.Main(context.Background(), args[2:], os.Stdout, os.Stderr)
	}
	local.UseItself(daemonArgument)
	return false, 0
}
