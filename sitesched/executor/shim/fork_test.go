package shim

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestForkPatiently(t *testing.T) {
	for name, c := range map[string]struct {
		errs  []error // what the first tries return; the last is repeated
		tries int
		want  error
	}{
		"at once":        {[]error{nil}, 1, nil},
		"out of memory":  {[]error{syscall.ENOMEM, syscall.ENOMEM, nil}, 3, nil},
		"no processes":   {[]error{syscall.EAGAIN, nil}, 2, nil},
		"never":          {[]error{syscall.EAGAIN}, 10, syscall.EAGAIN},
		"another reason": {[]error{syscall.EAGAIN, syscall.ENOENT}, 2, syscall.ENOENT},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				begin := time.Now()
				_, err := forkPatiently(func() (int, error) {
					tries++
					return 1, c.errs[min(tries, len(c.errs))-1]
				})
				if tries != c.tries || !errors.Is(err, c.want) {
					t.Errorf("%d tries, %v; want %d, %v", tries, err, c.tries, c.want)
				}
				if waited := time.Since(begin); waited > 3*forkPatience {
					t.Errorf("waited %v", waited)
				}
			})
		})
	}
}

func TestExplainFork(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		directory string
		err       error
		cause     Cause
		code      int
	}{
		"no room":      {dir, syscall.EAGAIN, CauseNotStarted, 0},
		"no directory": {dir + "/x", syscall.ENOENT, CauseExec, 126},
		"no program":   {dir, syscall.ENOENT, CauseExec, 127},
		"no rights":    {dir, syscall.EACCES, CauseExec, 126},
		"too long":     {dir, syscall.E2BIG, CauseExec, 126},
		"no user":      {dir, syscall.EPERM, CauseExec, 126},
	} {
		j := running{run: &Run{Directory: c.directory}}
		err := j.explainFork("/no/such", c.err)
		if err == nil || j.exit.Cause != c.cause || j.exit.Code != c.code || j.exit.Reason == "" {
			t.Errorf("%s: %v, %+v", name, err, j.exit)
		}
	}
}
