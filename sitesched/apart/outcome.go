package apart

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cluster/wire"
	"kith/internal/job"
	"kith/internal/pause"
	"kith/meta"
	"kith/meta/transfer"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/sitesched/runner"
	"kith/store/blobstore"
)

// takeAgain is how often files that did not come are tried again.
const takeAgain = 2 * time.Second

// take takes what became of an attempt. The caller holds the mutex.
func (d *Driver) take(a job.AttemptID, ev meta.Event) {
	if _, here := ev.(meta.FilesHere); here {
		delete(d.bringing, a)
		d.cfg.Tell(ev)
		return
	}
	e := d.attempts[a]
	if e == nil || e.told {
		return
	}
	switch ev := ev.(type) {
	case meta.AttemptMissing:
		delete(d.attempts, a)
		if ev.Bringing {
			d.bringing[a] = true
		}
		d.cfg.Tell(ev)
	case meta.StartFailed:
		delete(d.attempts, a)
		ev.Reason = fmt.Sprintf("machine %s: %s", d.cfg.Machine, ev.Reason)
		d.cfg.Tell(ev)
	case meta.AttemptEnded:
		d.ended(e, ev.Outcome)
	default:
		d.cfg.Tell(ev)
	}
}

// ended brings what an attempt left to the site, and tells its end then. The caller holds the mutex.
func (d *Driver) ended(e *driven, o job.Outcome) {
	if e.taking != nil {
		return // it is on its way
	}
	set, err := transfer.Decode(o.Files)
	if err != nil {
		e.outcome = &o
		d.endWithout(e, "its output is lost: the list of it is not valid")
		return
	}
	if len(set.Sums()) == 0 {
		d.end(e, o)
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	e.outcome, e.set, e.taking = &o, set, cancel
	d.wg.Go(func() {
		defer cancel()
		d.bringOutput(ctx, e)
	})
}

// bringOutput brings the files of an attempt, for as long as it takes.
func (d *Driver) bringOutput(ctx context.Context, e *driven) {
	a := e.launch.Attempt
	for {
		hold, err := d.cfg.Runs.Take(ctx, a, e.set, source{d})
		d.mu.Lock()
		if d.attempts[a] != e || e.told || ctx.Err() != nil {
			d.mu.Unlock()
			if hold != nil {
				hold.Close()
			}
			return
		}
		wait := runner.WaitText(err)
		switch {
		case err == nil:
			e.hold = hold
			d.end(e, *e.outcome)
		case e.killed != nil, wait == "" && finally(err):
			d.endWithout(e, "its output is lost: "+err.Error())
		default:
			d.mu.Unlock()
			d.cfg.Log.Warn("output not brought from the machine that has the processors; tried again", "attempt_id", a.String(), "error", err.Error())
			if wait != "" {
				d.cfg.Tell(meta.FilesWait{Attempt: a, Reason: wait})
			}
			if !pause.For(ctx, takeAgain) {
				return
			}
			continue
		}
		d.mu.Unlock()
		return
	}
}

// finally reports whether asking again is of no use.
func finally(err error) bool {
	return errors.Is(err, transfer.ErrNotFound) || errors.Is(err, transfer.ErrBadReply) || errors.Is(err, transfer.ErrBadSet) || errors.Is(err, transfer.ErrTooLarge)
}

// source reads chunks of the machine.
type source struct{ d *Driver }

// ReadChunk implements transfer.Source.
func (s source) ReadChunk(ctx context.Context, a job.AttemptID, sum blobstore.Sum, offset int64, limit int) ([]byte, error) {
	reply, err := s.d.readFile(ctx, &kithv1.FileRequest{
		Attempt: wire.AttemptName(a), Target: &kithv1.FileRequest_Chunk{Chunk: sum[:]}, Offset: offset, Limit: int32(limit), //nolint:gosec // at most MaxPieceBytes
	})
	return reply.GetData(), err
}

// ReadLive is [runner.FilesConfig].Live.
func (d *Driver) ReadLive(ctx context.Context, a job.AttemptID, name string, offset int64, limit int, wait time.Duration) (data []byte, end bool, err error) {
	if limit <= 0 {
		limit = transfer.MaxPieceBytes
	}
	reply, err := d.readFile(ctx, &kithv1.FileRequest{
		Attempt: wire.AttemptName(a), Target: &kithv1.FileRequest_Output{Output: name}, Offset: offset, Limit: int32(limit), Wait: durationpb.New(wait), //nolint:gosec // likewise
	})
	return reply.GetData(), reply.GetEnd(), err
}

// readFile asks the machine for bytes and waits for them.
func (d *Driver) readFile(ctx context.Context, r *kithv1.FileRequest) (*kithv1.FileReply, error) {
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	if s == nil {
		return nil, fmt.Errorf("%w: %w", transfer.ErrUnavailable, errNoSession)
	}
	waits := make(chan *kithv1.FileReply, 1)
	s.mu.Lock()
	if s.over != nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", transfer.ErrUnavailable, errNoSession)
	}
	s.last++
	r, number := proto.Clone(r).(*kithv1.FileRequest), s.last
	r.Request = number
	s.reads[number] = waits
	s.mu.Unlock()
	s.out.put(&kithv1.DriveRequest{Order: &kithv1.DriveRequest_Read{Read: r}})
	select {
	case reply, is := <-waits:
		if !is {
			return nil, fmt.Errorf("%w: %w", transfer.ErrUnavailable, errNoSession)
		}
		return reply, runner.ReplyError(reply)
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.reads, number)
		s.mu.Unlock()
		return nil, ctx.Err()
	}
}
