package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"kith/internal/pause"
	"kith/store"
)

// A store or a disk that cannot be read says nothing about an attempt. To take the
// error for an answer would end a job that could run, or start one twice. So the
// attempt waits, and its effect is carried out when the read succeeds.

// readPause is how often a read that failed is tried again.
const readPause = time.Second

// mayPass reports whether a read failed for a reason that is not in what was to be
// read: an answer may come another time.
func mayPass(err error) bool {
	return err != nil && !errors.Is(err, store.ErrUnknown) && !errors.Is(err, fs.ErrNotExist)
}

// whenRead calls then as soon as read returns an answer: at once, if it does so the
// first time, and else later on another goroutine, within the context of the
// function hold. It gives up, with the last error, when that is done.
func (s *Runner) whenRead(r *run, hold func() (context.Context, context.CancelFunc), read func() error, then func(err error)) {
	err := read()
	if !mayPass(err) {
		then(err)
		return
	}
	log := s.log.With("attempt_id", r.attempt.String(), "job_id", r.attempt.Job.String())
	log.Error("attempt waits: what it runs cannot be read from the store; tried again until it can", "error", err.Error())
	ctx, stop := hold()
	s.wg.Go(func() {
		defer stop()
		for mayPass(err) && pause.For(ctx, readPause) {
			err = read()
		}
		if !mayPass(err) {
			log.Info("the store can be read again")
		}
		then(err)
	})
}

// found is what an earlier daemon left of an attempt that it began.
type found struct {
	payload *payload // nil if there is none
	// ready says that the daemon had come so far as to start it.
	ready bool
}

// find looks for what an earlier daemon left of an attempt. An error says that it
// is not known.
func (s *Runner) find(r *run) (found, error) {
	raw, err := os.ReadFile(r.files.Mark)
	if err == nil {
		p, err := parsePayload(raw)
		return found{p, err == nil}, nil
	}
	if mayPass(err) {
		return found{}, err
	}
	if r.attempt.Job.Origin != s.site {
		return found{}, nil
	}
	switch raw, err := s.files.cfg.Backend.Payload(r.attempt.Job); {
	case mayPass(err):
		return found{}, err
	case err == nil:
		if p, err := parsePayload(raw); err == nil {
			return found{p, len(p.inputs.Files) == 0}, nil
		}
	}
	return found{}, nil // it has no payload, and never was started
}
