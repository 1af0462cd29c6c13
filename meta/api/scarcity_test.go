package api

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
)

// scarceFiles cannot pack anything.
type scarceFiles struct {
	Files
	err error
}

func (f scarceFiles) Pack(context.Context, []transfer.Input) (transfer.Set, error) {
	return transfer.Set{}, f.err
}

// What the machine lacks for now is neither a bug of the site, nor a bad input, nor an
// output that is gone: the caller is asked to come again, and the log has a line now
// and then.
func TestScarcityIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for errno, want := range map[syscall.Errno]answer{
			syscall.EMFILE: {code: codes.Unavailable, reason: "HOST_SCARCE", retry: 5 * time.Second},
			syscall.ENFILE: {code: codes.Unavailable, reason: "HOST_SCARCE", retry: 5 * time.Second},
			syscall.ENOMEM: {code: codes.Unavailable, reason: "HOST_SCARCE", retry: 5 * time.Second},
			syscall.EAGAIN: {code: codes.Unavailable, reason: "HOST_SCARCE", retry: 5 * time.Second},
			syscall.EROFS:  {code: codes.Unavailable, reason: "HOST_SCARCE", retry: 5 * time.Second},
			syscall.ENOSPC: {code: codes.ResourceExhausted, reason: "DISK_FULL", retry: time.Minute},
			syscall.EDQUOT: {code: codes.ResourceExhausted, reason: "DISK_FULL", retry: time.Minute},
		} {
			var text bytes.Buffer
			cause := fmt.Errorf("put chunk: %w", &os.PathError{Op: "openat", Path: "chunks/17/17c8", Err: errno})
			s := New(Config{
				Logger: slog.New(slog.NewTextHandler(&text, nil)),
				Files:  scarceFiles{err: &transfer.InputError{Path: "a", Field: "source", Err: cause}},
			})
			_, packing := s.payload(t.Context(), &kithv1.Job{Inputs: []*kithv1.InputFile{{Path: "a"}}})
			for _, err := range []error{
				packing, cause, fmt.Errorf("output: %w: %w", ErrNoOutput, cause), fmt.Errorf("upload: %w: %w", transfer.ErrNotFound, cause),
			} {
				for range 100 {
					err := s.toStatus(t.Context(), "Test", err)
					got := onWire(t, err)
					if got.code != want.code || got.reason != want.reason || got.retry != want.retry || len(got.fields) != 0 {
						t.Fatalf("%v: %+v, want %+v", errno, got, want)
					}
					if strings.Contains(err.Error(), "17c8") {
						t.Fatalf("%v tells of the site's files", err)
					}
				}
				time.Sleep(time.Second)
			}
			if n := strings.Count(text.String(), "level=WARN"); n != 1 || strings.Contains(text.String(), "level=ERROR") {
				t.Errorf("%v: %d lines in the log:\n%s", errno, n, text.String())
			}
			time.Sleep(scarcityEvery)
			s.toStatus(t.Context(), "Test", cause) //nolint:errcheck // only the log counts
			if !strings.Contains(text.String(), "calls=400") {
				t.Errorf("the log does not count:\n%s", text.String())
			}
		}
	})
	// A site that can write nothing down says that.
	if got := onWire(t, testServer().toStatus(t.Context(), "Test", fmt.Errorf("%w: %w", ErrNotDurable, syscall.EROFS))); got.reason != "NOT_DURABLE" {
		t.Errorf("not durable: %+v", got)
	}
}
