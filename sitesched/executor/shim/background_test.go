package shim

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The low thread is never the first of the shim: ps would say that the shim gives way.
func TestOwnThreadIsNotTheFirst(t *testing.T) {
	for n := range 2000 {
		ran := make(chan int)
		onOwnThread(func() { ran <- unix.Gettid() })
		if tid := <-ran; tid == unix.Getpid() {
			t.Fatalf("time %d: it runs on the first thread", n)
		}
	}
}
