package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kith/internal/job"
)

// remedies are what is to be done about sites that do not meet. They depend on how sites
// know each other.
type remedies bool

const (
	byConfiguration remedies = false // [[peers]]
	byInvitation    remedies = true  // a trust table
)

func (l *Links) remedies() remedies { return remedies(l.cfg.Proven != nil) }

// address is what to do about an address that is wrong.
func (r remedies) address(site job.SiteID) string {
	if r == byConfiguration {
		return "correct peers.address here"
	}
	return fmt.Sprintf("if %s has moved it says so when it reaches this site; if both have moved, say where it is now: kith site address %s HOST:PORT, or kith site invite %s", site, site, site)
}

// name is what to do about an address where another site is.
func (r remedies) name(site job.SiteID) string {
	if r == byConfiguration {
		return "correct peers.site or peers.address here"
	}
	return r.address(site)
}

// expect is what to do when the other site does not expect this one.
func (r remedies) expect() string {
	if r == byConfiguration {
		return "its operator must add it to [[peers]] there"
	}
	return "ask its operator for an invitation"
}

// admit is what to do here about a site that is to be admitted.
func (r remedies) admit(site job.SiteID) string {
	if r == byConfiguration {
		return "name it in [[peers]]"
	}
	return fmt.Sprintf("its operator needs an invitation of this site: kith site invite %s", site)
}

// explainAll says in a sentence for each address why dialling a site failed there, and what
// to do, and whether a program answered anywhere. The text has 256 bytes and the remedy.
func explainAll(site job.SiteID, misses []miss, r remedies) (why string, answered bool) {
	var causes, cures []string
	for _, m := range misses {
		cause, remedy, a := explain(site, m.address, m.err, r)
		answered = answered || a
		causes = append(causes, cause)
		if remedy != "" && !slices.Contains(cures, remedy) {
			cures = append(cures, remedy)
		}
	}
	why = shown(strings.Join(causes, "; "))
	for _, c := range cures {
		why += "; " + c
	}
	return why, answered
}

// explain says why dialling a site failed at an address and what is to be done, if anything
// is, and whether a program answered there.
func explain(site job.SiteID, address string, err error, r remedies) (why, remedy string, answered bool) {
	text := err.Error()
	if s := (interface{ GRPCStatus() *status.Status })(nil); errors.As(err, &s) {
		text = s.GRPCStatus().Message()
	}
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
	}
	code := status.Code(err)
	switch {
	case errors.Is(err, ErrBehind):
		return fmt.Sprintf("this site refuses %s: %v", site, ErrBehind),
			fmt.Sprintf("its jobs may run twice: stop it and give it the latest state of its data folder or an empty one; or have it as it is: kith site forget %s", site), true
	case errors.Is(err, ErrFolder):
		return fmt.Sprintf("this site refuses %s: %v", site, ErrFolder), "stop the one that came last and start it with an empty data folder", true
	case errors.Is(err, ErrOtherSite), has(ErrOtherSite.Error()):
		if inner := errors.Unwrap(err); inner != nil && errors.Is(err, ErrOtherSite) {
			text = inner.Error()
		}
		return fmt.Sprintf("another site answers at %s: %s", address, strings.TrimSuffix(text, ": "+ErrOtherSite.Error())), r.name(site), true
	case code == codes.PermissionDenied:
		return fmt.Sprintf("site %s does not expect this site", site), r.expect(), true
	case code == codes.FailedPrecondition, code == codes.InvalidArgument, code == codes.AlreadyExists:
		return fmt.Sprintf("refused at %s: %s", address, text), "", true
	case errors.Is(err, ErrProtocol), errors.Is(err, ErrMessage), errors.Is(err, job.ErrBadSiteID):
		return fmt.Sprintf("what answers at %s cannot be talked to: %v", address, err), "", true
	case has("remote error: tls:"):
		return fmt.Sprintf("site %s at %s refuses the certificate of this site: it does not trust this site, or no more", site, address), r.expect(), true
	case has(unproven) && has(closed...):
		return fmt.Sprintf("what answers at %s closes connections before it says who it is: it has too many, or is no kithd", address), r.address(site), true
	case r == byInvitation && code == codes.Unavailable && has(closed...): // it has proved its name before
		return fmt.Sprintf("site %s at %s closes the connection: it may not trust this site, or no more", site, address), r.expect(), true
	case code == codes.Unimplemented, has("unexpected HTTP status", "content-type", "server preface", "malformed HTTP", "frame too large", "does not look like a TLS handshake", "no application protocol"):
		return fmt.Sprintf("what answers at %s is no kithd", address), r.address(site), true
	case has("lookup ", "no such host", "missing port", "too many colons", "invalid port", "unknown port"):
		return fmt.Sprintf("address %s cannot be resolved: look at the name service", address), r.address(site), false
	case has("connection refused"):
		return fmt.Sprintf("nothing listens at %s: kithd is down there, or the address is wrong", address), r.address(site), false
	case code == codes.Canceled, errors.Is(err, context.Canceled), has("i/o timeout", "deadline exceeded"):
		return fmt.Sprintf("nothing answers at %s: the machine is down or a firewall drops what is sent", address), r.silent(site), false
	case has(unproven):
		_, text, _ = strings.Cut(text, unproven)
		return fmt.Sprintf("what answers at %s does not prove that it is %s: %s", address, site, strings.Trim(text, "\" ")), r.address(site), true
	case has("no route to host", "network is unreachable"):
		return fmt.Sprintf("there is no route to %s", address), r.silent(site), false
	}
	return fmt.Sprintf("%s cannot be reached", address), r.silent(site), false
}

// closed is in the words of a connection that the other end has closed.
var closed = []string{"EOF", "connection reset by peer", "broken pipe", "closed before server preface"}

// unproven comes before the reason why a certificate was refused here.
const unproven = "authentication handshake failed: "

// silent is what to do about an address where nothing answers.
func (r remedies) silent(site job.SiteID) string {
	if r == byConfiguration {
		return "" // the address may well be right
	}
	return r.address(site)
}
