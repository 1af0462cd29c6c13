package meta

import (
	"fmt"

	"kith/internal/job"
	"kith/store"
)

// core is what the three roles of a site share: its configuration, its facts,
// and what the step under way has done so far.
type core struct {
	cfg      Config
	self     job.SiteID
	st       *store.State
	out      []Effect // of this step
	counters Counters
}

// record records a fact that must be possible: the caller checked before. A
// failure is a bug and stops the site rather than let it go on with a wrong
// idea of the truth.
func record[C store.Command](st *store.State, c C) {
	if err := store.Record(st, c); err != nil {
		panic(fmt.Sprintf("meta: %T refused: %v", c, err))
	}
}

func (c *core) emit(f Effect) { c.out = append(c.out, f) }

// reply answers a client.
func (c *core) reply(token uint64, id job.ID, state job.State, err error) {
	c.emit(Reply{Token: token, Job: id, State: state, Err: err})
}

// submitted returns the job or bag that was submitted here under a request id, the zero id
// for none. The error wraps [ErrRequestReused] if it is not the one that is meant.
func (c *core) submitted(requestID string, bodyHash [32]byte, bag bool) (job.ID, error) {
	reused := func(what string, id job.ID) error {
		return fmt.Errorf("request_id %q, %s %v: %w", requestID, what, id, ErrRequestReused)
	}
	if b := c.st.BagOfRequest(requestID); b != nil {
		if !bag || b.BodyHash != bodyHash {
			return b.ID, reused("bag", b.ID)
		}
		return b.ID, nil
	}
	if j := c.st.JobOfRequest(requestID); j != nil {
		if bag || j.BodyHash != bodyHash {
			return j.ID, reused("job", j.ID)
		}
		return j.ID, nil
	}
	return job.ID{}, nil
}

// here returns a request as it counts at this site, see [Config.ReferenceTimes].
func (c *core) here(r *job.Request) job.Request {
	local := *r
	if !c.cfg.ReferenceTimes {
		return local
	}
	local.Walltime = job.Scaled(r.Walltime, c.cfg.Self.Speed)
	return local
}

// find returns the record of a job submitted here, or an error that wraps
// [ErrUnknownJob] or [ErrForeignJob].
func (c *core) find(id job.ID) (*store.Job, error) {
	if j := c.st.Job(id); j != nil {
		return j, nil
	}
	if id.Origin != c.self {
		return nil, fmt.Errorf("job %v: %w: ask site %s", id, ErrForeignJob, id.Origin)
	}
	return nil, fmt.Errorf("job %v: %w at site %s", id, ErrUnknownJob, c.self)
}
