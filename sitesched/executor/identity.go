package executor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"kith/internal/durable"
)

// idName is the file with the id of the directory, drawn when it is made: attempts that were begun
// with another one have nothing in this directory that tells what became of them.
const idName = ".id"

// idDigits is how long an id is, in hexadecimal digits.
const idDigits = 16

// openID returns the id of the directory, which it draws if that is new. One that an executor
// has used that knew of no id goes on without: attempts that run there were begun so.
func (f *folders) openID() (string, error) {
	b, err := os.ReadFile(f.path(idName))
	switch {
	case err == nil && len(b) == idDigits+1 && strings.Trim(string(b), "0123456789abcdef") == "\n":
		return string(b[:idDigits]), nil
	case err == nil:
		return "", fmt.Errorf("%s has %d bytes that are no id of its folder: restore it, or remove the whole folder; attempts that run there are lost then", f.path(idName), len(b))
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if _, err := os.Lstat(f.path(begunName)); !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var id [idDigits / 2]byte
	rand.Read(id[:])
	text := fmt.Sprintf("%x", id)
	return text, durable.WriteFile(f.path(idName), []byte(text+"\n"))
}

// since says what has happened to the machine and to the directory since an attempt was begun, of
// which boot is what [Executor.BootID] returned then; empty for this boot.
func (x *Executor) since(boot string) (rebooted, emptied bool) {
	machine, _, _ := strings.Cut(boot, "/")
	rebooted = boot != "" && machine != x.boot
	return rebooted, !rebooted && boot != "" && boot != x.BootID()
}

// reportEmptied reports an attempt that was begun with another directory in the place of this one, on
// a machine that was not restarted: nothing tells how far it came. What still runs of it is killed first.
func (x *Executor) reportEmptied(a *attempt) {
	x.reportLost(a, evidence{reason: fmt.Sprintf("the folder %s was emptied or replaced while it may have run", x.folders.dir)}, false)
}
