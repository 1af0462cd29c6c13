package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"kith/cluster"
	"kith/cluster/gossip"
	"kith/internal/identity"
	"kith/internal/job"
	"kith/internal/places"
	"kith/meta"
	"kith/meta/peer"
	"kith/meta/trust"
	"kith/meta/trust/audit"
	"kith/meta/trust/token"
	"kith/sitesched/runner"
)

// auditFolder is the folder of the audit log in the data folder.
const auditFolder = "audit"

// auditPatience is how long an operator's command waits until it is in the audit log. It
// has happened then: a disk that hangs must not keep an operator from looking after the site.
const auditPatience = 2 * time.Second

func (d *Daemon) openAudit() (err error) {
	cfg := audit.Config{Dir: filepath.Join(d.cfg.Data, auditFolder), Site: d.cfg.Site, Logger: d.log}
	if d.identity != nil {
		cfg.Signer = audit.SignedBy(d.identity.keys, time.Now)
	}
	d.audit, err = audit.Open(cfg)
	return err
}

// decisionOf is what the audit log says of a command, false if it is none for it. What
// changes the site is durable there before it is answered; what users do to their jobs
// is in the job's record durably, and here soon after.
func decisionOf(ev meta.Event) (e audit.Entry, durable, ok bool) {
	switch ev := ev.(type) {
	case meta.SetDrain:
		e = audit.Entry{Kind: "resume", User: ev.Actor.String()}
		if ev.On {
			e.Kind, e.Text = "drain", ev.Reason
		}
		return e, true, true
	case meta.ForgetSite:
		e = audit.Entry{Kind: "forget", User: ev.Actor.String(), Peer: string(ev.Site)}
		if ev.Requeue {
			e.Text = "requeue"
		}
		return e, true, true
	case meta.TrustHost:
		return audit.Entry{Kind: "trust-host", User: ev.Actor.String(), Peer: string(ev.Site), Text: ev.Node}, true, true
	case meta.AdmitSite:
		e = audit.Entry{Kind: audit.KindAdmit, User: ev.Actor.String(), Peer: string(ev.Site), Text: ev.Invitation}
		return e, true, true
	case meta.SetAddresses:
		return audit.Entry{Kind: "address", User: ev.Actor.String(), Peer: string(ev.Site), Text: strings.Join(ev.Addresses, " ")}, true, true
	case meta.RevokeSite:
		e = audit.Entry{Kind: "revoke", User: ev.Actor.String(), Peer: string(ev.Site), Text: ev.Reason}
		if ev.LetRun {
			e.Rule = "let-run"
		}
		return e, true, true
	case meta.ForgetTrust:
		text := "its name is free; its CA was " + strings.Join(ev.Fingerprints, " ")
		return audit.Entry{Kind: "forget-trust", User: ev.Actor.String(), Peer: string(ev.Site), Text: text}, true, true
	case meta.Leave:
		e = audit.Entry{Kind: "leave", User: ev.Actor.String(), Text: ev.Reason}
		if ev.LetRun {
			e.Rule = "let-run"
		}
		return e, true, true
	case meta.OpenInvitation:
		return audit.Entry{Kind: "invite", User: ev.Actor.String(), Peer: string(ev.Name), Text: ev.ID}, true, true
	case meta.CloseInvitation:
		return audit.Entry{Kind: "refuse-invitation", User: ev.Actor.String(), Text: ev.ID}, true, true
	case meta.RevokeToken:
		return audit.Entry{Kind: "revoke-token", User: ev.Actor.String(), Text: ev.ID}, true, true
	case meta.Cancel:
		return audit.Entry{Kind: "cancel", User: ev.Actor.String(), Job: ev.Job.String(), Text: ev.Reason}, false, true
	case meta.CancelBag:
		e = audit.Entry{Kind: "cancel", User: ev.Actor.String(), Job: ev.Bag.String(), Text: ev.Reason}
		if ev.Tasks != nil {
			e.Text = strings.TrimSuffix(fmt.Sprintf("%d of its tasks: %s", ev.Tasks.Count(), ev.Reason), ": ")
		}
		return e, false, true
	}
	return audit.Entry{}, false, false
}

// witness writes down what a person has caused.
func (d *Daemon) witness(ctx context.Context, ev meta.Event) {
	e, durable, ok := decisionOf(ev)
	if !ok {
		return
	}
	e.From = identity.From(ctx).Address
	if !durable {
		d.audit.Record(e)
		return
	}
	d.sync(ctx, e)
}

// sync has a line in the audit log before it returns, unless that takes too long.
func (d *Daemon) sync(ctx context.Context, e audit.Entry) {
	ctx, cancel := context.WithTimeout(ctx, auditPatience)
	defer cancel()
	if err := d.audit.Sync(ctx, e); err != nil {
		d.log.Error("not in the audit log", "kind", e.Kind, "actor", e.User, "from", e.From, "error", err.Error())
	}
}

// refusedOfPeer writes down what was refused of another site.
func (d *Daemon) refusedOfPeer(r peer.Refusal) {
	e := audit.Entry{Kind: "refused-" + string(r.What), Rule: r.Rule, Peer: string(r.Site), From: r.Address, Text: r.Err.Error()}
	if r.Claimed != "" {
		e.Text = "as " + string(r.Claimed) + ": " + e.Text
	}
	d.audit.Refuse(e)
}

// refusedOfWork writes down what was refused of another site about files and results, in
// the log once a minute.
func (d *Daemon) refusedOfWork(r runner.Refusal) {
	d.audit.Refuse(audit.Entry{Kind: "refused-" + string(r.What), Rule: r.Rule, Peer: string(r.Site), Text: r.Err.Error()})
	if n, ok := d.refusedWork.Pass(r.Site, time.Now(), time.Minute); ok {
		d.log.Warn("files or results of a peer refused", "peer_id", string(r.Site), "what", string(r.What), "rule", r.Rule,
			"error", job.ClipReason(r.Err.Error()), "refused_since_last_line", n)
	}
}

// refusedInGossip writes down what gossip did not take of another site.
func (d *Daemon) refusedInGossip(r gossip.Refusal) {
	d.audit.Refuse(audit.Entry{Kind: "refused-gossip", Rule: r.Rule, Peer: string(r.Site), Text: r.Err.Error()})
}

// headToTell returns what others are told of the audit log, nil if nothing.
func (d *Daemon) headToTell() *cluster.AuditHead {
	if d.options.lead != nil {
		return nil // each member has a log of its own: that of the next does not go on from this one
	}
	if h, ok := d.audit.Head(); ok {
		return h.Sent()
	}
	return nil
}

// heardHead takes up what another site tells of its audit log.
func (d *Daemon) heardHead(site job.SiteID, sent *cluster.AuditHead) {
	h := audit.Received(site, sent)
	err := d.audit.Hear(h)
	if err == nil {
		return
	}
	if n, ok := d.brokenHeads.Pass(site, time.Now(), time.Minute); ok {
		d.log.Warn("audit log of a site does not go on from what it told", "peer_id", string(site), "error", err.Error(), "told_since_last_line", n,
			"remedy", "kith site show "+string(site)+", and ask its operator")
	}
}

// refusedAtBorder writes down that an address met a bound.
func (d *Daemon) refusedAtBorder(bound, address string) {
	d.audit.Refuse(audit.Entry{Kind: "refused-bound", Rule: bound, From: address})
}

// refusedRate writes down that a user makes more requests than rates.user.
func (d *Daemon) refusedRate(c identity.Caller) {
	d.audit.Refuse(audit.Entry{Kind: "refused-rate", Rule: "user", From: places.Sender(c.Address), User: c.Actor.String()})
}

// metAtPort writes down, in both logs, that an address met a bound of the port.
func (d *Daemon) metAtPort(bound, address string, most int) {
	d.border.tell(bound, address, most)
}

// refusedHandshake writes down that a connection did not prove what its protocol asks for.
func (d *Daemon) refusedHandshake(address string, err error) {
	d.border.tellCaller(address, err)
	d.audit.Refuse(audit.Entry{Kind: "refused-handshake", Rule: trust.Rule(err), From: address, Text: err.Error()})
}

// refusedToken writes down that a call did not come with a token of this site.
func (d *Daemon) refusedToken(address string, err error) {
	from := places.Sender(address)
	d.pace.refused(from)
	d.border.tellCaller(address, err)
	d.audit.Refuse(audit.Entry{Kind: "refused-token", Rule: token.Rule(err), From: from, Text: err.Error()})
}
