package codec

import (
	"sync"

	statev1 "kith/proto/gen/kith/state/v1"
	"kith/store"
)

// record is what the records of jobs and copies are converted to before they are sealed, in
// one piece of memory that is used again: sites write little else, several times for each
// job. A message that it returns is good until the next one.
type record struct {
	job     statev1.JobRecord
	copy    statev1.CopyRecord
	name    statev1.JobName
	attempt statev1.AttemptName
	request statev1.Request
	sites   []string
	events  []statev1.ClaimRecord
	claims  []*statev1.ClaimRecord // to events
}

var records = sync.Pool{New: func() any { return new(record) }}

// ofJob converts a job that guests have cost that much.
func (r *record) ofJob(j *store.Job, harm store.Harm) *statev1.JobRecord {
	nameJob(&r.name, j.ID)
	fillRequest(&r.request, &j.Request)
	r.sites = r.sites[:0]
	for _, s := range j.Sites {
		r.sites = append(r.sites, string(s))
	}
	r.ofEvents(j.Events)
	m := &r.job
	*m = statev1.JobRecord{
		Id: &r.name, Request: &r.request, RequestId: j.RequestID, BodyHash: j.BodyHash[:],
		State: uint32(j.State), Attempt: j.Attempt, Holder: string(j.Holder), HolderStamp: j.HolderStamp, HolderGeneration: j.HolderGeneration,
		CancelRequested: j.CancelRequested, SubmitTimeNs: int64(j.Submitted), StartTimeNs: int64(j.Started),
		CloseTimeNs: int64(j.Closed), Outcome: outcomeMessage(j.Outcome), LeaseNs: int64(j.Lease),
		Submitter: string(j.Submitter), Version: j.Version, Sites: r.sites, ClaimEvents: r.claims, Revoked: uint32(j.Revoked),
		BlockedNs: int64(harm.Blocked), PromisesMoved: harm.Moved,
	}
	m.Forecast = forecastMessage(j.Forecast)
	m.Level, m.Guess = uint32(j.Level), float64(j.Guess)
	m.Demotions, m.CheckpointAttempt = demotionMessages(j.Demotions), j.Checkpoint
	m.Saved = savedMessage(j.Saved)
	if j.SaveAsked {
		m.AskedAttempt = j.Attempt
	}
	for _, h := range j.Earlier {
		m.Earlier = append(m.Earlier, &statev1.HoldingRecord{Attempt: h.Attempt, Site: string(h.Site)})
	}
	for _, a := range j.Acts {
		m.Acts = append(m.Acts, &statev1.ActRecord{
			TimeNs: int64(a.Time), Kind: uint32(a.Kind), Actor: string(a.Actor), Reason: a.Reason, Site: string(a.Site),
		})
	}
	return m
}

func (r *record) ofEvents(events []store.ClaimEvent) {
	if len(events) > len(r.events) {
		r.events = make([]statev1.ClaimRecord, 2*len(events))
	}
	r.claims = r.claims[:0]
	for i, e := range events {
		r.events[i] = statev1.ClaimRecord{
			TimeNs: int64(e.Time), Attempt: e.Attempt, Kind: uint32(e.Kind), Site: string(e.Site), Reason: uint32(e.Reason),
		}
		r.claims = append(r.claims, &r.events[i])
	}
}

// ofCopy converts a copy.
func (r *record) ofCopy(c *store.Copy) *statev1.CopyRecord {
	nameJob(&r.name, c.ID.Job)
	fillRequest(&r.request, c.Request)
	r.attempt = statev1.AttemptName{Job: &r.name, Number: c.ID.Number}
	r.copy = statev1.CopyRecord{
		Attempt: &r.attempt, Request: &r.request, Phase: statev1.CopyPhase(c.Phase),
		ArrivalTimeNs: int64(c.Arrived), BeginTimeNs: int64(c.Begun), BootId: c.BootID, Outcome: outcomeMessage(c.Outcome),
		OriginTooSmall: c.OriginTooSmall, LimitSeconds: c.LimitSeconds, Before: progressMessage(c.Before), Stays: c.Stays, GoesOn: c.GoesOn,
	}
	return &r.copy
}
