// Command kith-shim watches one job at a time for kithd and outlives it.
//
// It is not for people: kithd starts it with a socket as descriptor 3. Without
// it kithd uses itself as the shim, which does the same with more memory.
package main

import (
	"os"

	"kith/sitesched/executor/shim"
)

func main() {
	os.Exit(shim.Main())
}
