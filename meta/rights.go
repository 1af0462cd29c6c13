package meta

import (
	"slices"

	"kith/internal/job"
	"kith/store"
)

// Who may say what: one row for each kind of message between sites. [Engine.Step] looks
// a message up here before any part of the engine sees it, and nowhere else is asked whose
// job it is. What remains in the handlers is what state decides: a claim for a copy that
// was withdrawn is answered, not refused.

// Relation is what a sender is to what its message is about.
type Relation uint8

// The relations.
const (
	// AnySite is a site that this one trusts, whatever the message is about.
	AnySite Relation = iota
	// ItsOwn is the site that the message describes.
	ItsOwn
	// Origin is the origin of the job.
	Origin
	// OurHost is any trusted site, about a job whose origin is this one. Which of them
	// has a copy or the claim, state decides: others get an answer, and change no job.
	OurHost
	// Asked is a site whose answer is waited for.
	Asked
	// CopyHolder is a site that the latest attempt of a job of this one has a copy at.
	CopyHolder
	// ClaimHolder is the site that has the claim of the latest attempt of a job of this one.
	ClaimHolder
)

// String returns the relation in words.
func (r Relation) String() string {
	return [...]string{
		"any known site", "the site that it describes", "the origin of the job", "any known site, about a job of the receiver", "a site that was asked",
		"the holder of a copy", "the holder of the claim",
	}[r]
}

// Right is a row: a kind of message.
type Right struct {
	// Kind is its word, see [Message].Word.
	Kind string
	// Heard says who is answered at all. All others are refused: nothing changes, and
	// nothing leaves but the refusal.
	Heard Relation
	// Served says for whom it may change a copy or a job. A site that is heard and not
	// served gets the answer that state gives, see State.
	Served Relation
	// State says for people what becomes of a message whose sender is heard and not
	// served.
	State string
	// Late says that an honest site may come to be refused: its message was on its way
	// while what it is about was over.
	Late bool
	// rule is the name of the refusal.
	rule string
}

// kind numbers the kinds of messages.
type kind uint8

const (
	placeCopyKind kind = iota
	copyAnswerKind
	claimKind
	verdictKind
	renewKind
	renewedKind
	withdrawKind
	withdrawAckKind
	startedKind
	resultKind
	resultAckKind
	stopKind
	demoteKind
	savedKind
	savedAckKind
	giveBackKind
	copySummaryKind
	digestRequestKind
	copyDigestKind
	loadDigestKind
	startQueryKind
	startAnswerKind
	siteBundleKind
	bundleTakenKind
	offerKind // from here on about tasks, see [OfTasks]
	taskClaimKind
	taskVerdictKind
	taskResultsKind
	taskResultsAckKind
	recallKind
	stopTasksKind
	kinds
)

// Rules by which a message is refused.
const (
	ruleSelf      = "from-this-site"
	ruleNotOrigin = "not-the-origin"
	ruleForeign   = "job-of-another-site"
	ruleNotAsked  = "not-asked"
	ruleNoClaim   = "not-the-holder"
	ruleOtherSite = "about-another-site"
)

// rights is the table.
var rights = [kinds]Right{
	placeCopyKind:   {Kind: "place-copy", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	copyAnswerKind:  {Kind: "copy-answer", Heard: OurHost, Served: CopyHolder, State: "says whether that site takes copies, no more", rule: ruleForeign},
	claimKind:       {Kind: "claim", Heard: OurHost, Served: CopyHolder, State: "denied, with the reason", rule: ruleForeign},
	verdictKind:     {Kind: "verdict", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	renewKind:       {Kind: "renew", Heard: OurHost, Served: ClaimHolder, State: "not prolonged", rule: ruleForeign},
	renewedKind:     {Kind: "renewed", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	withdrawKind:    {Kind: "withdraw", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	withdrawAckKind: {Kind: "withdraw-ack", Heard: OurHost, Served: OurHost, rule: ruleForeign},
	startedKind:     {Kind: "started", Heard: ClaimHolder, Served: ClaimHolder, Late: true, rule: ruleNoClaim},
	resultKind: {
		Kind: "result", Heard: OurHost, Served: ClaimHolder, State: "superseded, unless that attempt may still win a race", rule: ruleForeign,
	},
	resultAckKind: {Kind: "result-ack", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	stopKind:      {Kind: "stop", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	demoteKind:    {Kind: "demote", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	savedKind: {
		Kind: "saved", Heard: OurHost, Served: ClaimHolder, State: "not taken", rule: ruleForeign,
	},
	savedAckKind:      {Kind: "saved-ack", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	giveBackKind:      {Kind: "give-back", Heard: OurHost, Served: CopyHolder, State: "says that the site has no such copy, no more", rule: ruleForeign},
	copySummaryKind:   {Kind: "copy-summary", Heard: AnySite, Served: AnySite},
	digestRequestKind: {Kind: "digest-request", Heard: AnySite, Served: AnySite},
	copyDigestKind:    {Kind: "copy-digest", Heard: OurHost, Served: CopyHolder, State: "asked to give up what it should not have", rule: ruleForeign},
	loadDigestKind:    {Kind: "load-digest", Heard: ItsOwn, Served: ItsOwn, rule: ruleOtherSite},
	startQueryKind:    {Kind: "start-query", Heard: AnySite, Served: AnySite},
	startAnswerKind:   {Kind: "start-answer", Heard: Asked, Served: Asked, Late: true, rule: ruleNotAsked},
	siteBundleKind:    {Kind: "site-bundle", Heard: ItsOwn, Served: ItsOwn, rule: ruleOtherSite},
	bundleTakenKind:   {Kind: "bundle-taken", Heard: AnySite, Served: AnySite},

	// Offers and claims name no bag: who speaks offers its own tasks, or asks for those of
	// the receiver.
	offerKind:          {Kind: "offer", Heard: AnySite, Served: AnySite},
	taskClaimKind:      {Kind: "task-claim", Heard: AnySite, Served: AnySite},
	taskVerdictKind:    {Kind: "task-verdict", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	taskResultsKind:    {Kind: "task-results", Heard: OurHost, Served: OurHost, rule: ruleForeign},
	taskResultsAckKind: {Kind: "task-results-ack", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	recallKind:         {Kind: "recall", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
	stopTasksKind:      {Kind: "stop-tasks", Heard: Origin, Served: Origin, rule: ruleNotOrigin},
}

// Rights returns the table, a row for each kind of message.
func Rights() []Right { return slices.Clone(rights[:]) }

// RightOf returns the row of a message.
func RightOf(m Message) Right { return rights[m.kind()] }

// refuse returns the rule by which a message of a site is refused, "" if it is heard.
func (e *Engine) refuse(from job.SiteID, m Message) string {
	if from == e.self {
		return ruleSelf // only a broken driver or a liar could do this
	}
	if rule := e.stranger(from); rule != "" {
		return rule
	}
	if e.severed[from] {
		return ruleRevoked
	}
	row := &rights[m.kind()]
	if !e.is(row.Heard, from, m) {
		return row.rule
	}
	return ""
}

// is reports whether the sender of a message, a site that is trusted, has a relation to
// what it is about.
func (e *Engine) is(r Relation, from job.SiteID, m Message) bool {
	switch r {
	case AnySite:
		return true
	case ItsOwn:
		switch m := m.(type) {
		case LoadDigest:
			return m.Digest.Site == from
		case SiteBundle:
			return m.Site == from
		}
		return false
	case Origin:
		if v, ok := m.(TaskVerdict); ok {
			return v.areOf(from)
		}
		return about(m).Job.Origin == from
	case OurHost:
		if d, ok := m.(CopyDigest); ok {
			return d.isOf(e.self)
		}
		return about(m).Job.Origin == e.self
	case Asked:
		a, ok := m.(StartAnswer)
		return ok && e.origin.awaits(from, a.Query)
	}
	a := about(m)
	o := e.origin.open.Get(a.Job)
	if o == nil || o.rec.Attempt != a.Number {
		return false
	}
	if r == CopyHolder {
		return o.rec.State == job.Queued && slices.Contains(o.rec.Sites, from) || o.rec.Holder == from
	}
	return o.rec.Holder == from
}

// isOf reports whether a list is of copies of one origin's jobs only.
func (d *CopyDigest) isOf(origin job.SiteID) bool {
	for i := range d.Entries {
		if d.Entries[i].Attempt.Job.Origin != origin {
			return false
		}
	}
	return (d.After.IsZero() || d.After.Origin == origin) && (d.Through.IsZero() || d.Through.Origin == origin)
}

// awaits reports whether the answer of a site to a start query is waited for.
func (or *origin) awaits(site job.SiteID, query uint64) bool {
	if or.seer != nil && or.seer.awaits(site, query) {
		return true
	}
	for _, o := range or.queries {
		if o.query.id != query {
			continue
		}
		for i := range o.query.answers {
			if a := &o.query.answers[i]; a.Site == site && a.Awaited {
				return true
			}
		}
	}
	return false
}

// about returns the attempt that a message is about, which may be a bundle, the zero one if
// it is about none.
func about(m Message) job.AttemptID {
	switch m := m.(type) {
	case PlaceCopy:
		return m.Attempt
	case CopyAnswer:
		return m.Attempt
	case Claim:
		return m.Attempt
	case Verdict:
		return m.Attempt
	case Renew:
		return m.Attempt
	case Renewed:
		return m.Attempt
	case Withdraw:
		return m.Attempt
	case WithdrawAck:
		return m.Attempt
	case Started:
		return m.Attempt
	case Result:
		return m.Attempt
	case ResultAck:
		return m.Attempt
	case Stop:
		return m.Attempt
	case Demote:
		return m.Attempt
	case Saved:
		return m.Attempt
	case SavedAck:
		return m.Attempt
	case GiveBack:
		return m.Attempt
	case TaskResults:
		return m.Bundle
	case TaskResultsAck:
		return m.Bundle
	case Recall:
		return m.Bundle
	case StopTasks:
		return m.Bundle
	}
	return job.AttemptID{}
}

// Rules by which a site has no say at all.
const (
	ruleRevoked = "revoked"
	ruleUnknown = "not-admitted"
)

// stranger returns the rule by which a site has no say here, "" if it may have one.
func (c *core) stranger(site job.SiteID) string {
	if c.st.TrustedSiteCount() == 0 && !c.cfg.Admitted {
		return ""
	}
	switch t := c.st.TrustedSite(site); {
	case site == c.self:
	case t != nil && t.State != store.SiteKnown:
		return ruleRevoked
	case t == nil && c.cfg.Admitted:
		return ruleUnknown
	}
	return ""
}
