package runner

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"kith/internal/job"
	"kith/internal/jobfile"
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
	for _, final := range []error{store.ErrUnknown, fs.ErrNotExist, jobfile.ErrNotFile, jobfile.ErrTooLarge, errPayload} {
		if errors.Is(err, final) {
			return false
		}
	}
	return err != nil
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
	log := s.log.With(r.names()...)
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
	if r.task != nil {
		return s.findTask(r)
	}
	raw, err := s.readMark(r.files.Mark)
	if err == nil {
		p, parseErr := parsePayload(raw)
		if parseErr == nil {
			return found{p, true}, nil
		}
		err = parseErr
	}
	if mayPass(err) {
		return found{}, err
	}
	begun := s.begun(r.attempt) // if it is so, its job has taken the mark away
	if s.files.cfg.Apart || r.attempt.Job.Origin != s.site {
		return found{ready: begun}, nil
	}
	switch raw, err := s.files.cfg.Backend.Payload(r.attempt.Job); {
	case mayPass(err):
		return found{}, err
	case err == nil:
		if p, err := parsePayload(raw); err == nil {
			return found{p, begun || len(p.inputs.Files) == 0 && !p.saves()}, nil
		}
	}
	return found{ready: begun}, nil // it has no payload
}

// begun reports whether the system has signs of an attempt beside the mark.
func (s *Runner) begun(a job.AttemptID) bool {
	x, ok := s.system.(interface{ Begun(job.AttemptID) bool })
	return ok && x.Begun(a)
}

func readMark(path string) ([]byte, error) { return jobfile.Read(markName(path)) }

// maxMark is the most that a mark can have: a payload fits a message.
const maxMark = 16 << 20

// markName names a mark as package jobfile wants it.
func markName(path string) (root, name string, most int64) {
	folder := filepath.Dir(path)
	return filepath.Dir(folder), filepath.Base(folder) + "/" + filepath.Base(path), maxMark
}
