package daemon

import (
	"net"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/cmd/kithd/members"
	"kith/meta/trust"
	"kith/store"
)

// leadParts are what a member of a site gives the [Daemon] that runs while it leads: what is
// there before and after, and belongs to the member.
type leadParts struct {
	backend store.Backend
	keys    *trust.Keys
	// port and socket are where connections come in, from here and from other members. The
	// daemon closes both.
	port, socket net.Listener
	copies       *members.Copies
	// addresses are those at which other sites find a member, this one's first.
	addresses func() []string
	members   deskOfMembers
	began     time.Time // the lead
	machine   *machine  // that has the processors; nil for none
}

// leadWarm is how long a lead may take until other sites have said what they have. Until then a
// job that no site is large enough for is not refused for good.
const leadWarm = 10 * time.Second

// retryLead is how long a client should wait for another member to lead.
const retryLead = 250 * time.Millisecond

// errLeadOver is what callers are told whose answer was lost as this member stopped leading. It
// has no reason of [api]: those say that nothing was done.
var errLeadOver = retryLater("the member of the site that was asked has stopped leading it, and whether what was asked is done is not known: ask again, under the same request id")

// retryLater is an error after which clients ask again soon.
func retryLater(text string) error {
	st := status.New(codes.Unavailable, text)
	if more, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryLead)}); err == nil {
		st = more
	}
	return st.Err()
}
