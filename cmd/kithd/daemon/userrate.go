package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"kith/internal/identity"
	"kith/meta/api"
	kithv1 "kith/proto/gen/kith/v1"
)

// userRates bounds how many requests a user makes in a second: one that is known by its
// name, others by their address. It is safe for use by several goroutines.
type userRates struct {
	*buckets[lane]
	// refused is told of each request that is too many; nil for nobody. It must not wait.
	refused func(identity.Caller)
}

func newUserRates(perSecond int, refused func(identity.Caller)) *userRates {
	return &userRates{newBuckets[lane](perSecond), refused}
}

// exempt reports whether a request is always let in: those about health, those that cancel,
// and those at the socket of this machine but to submit, see [controls].
func exempt(c identity.Caller, method string) bool {
	switch method {
	case kithv1.JobService_CancelJob_FullMethodName, kithv1.BagService_CancelBag_FullMethodName:
		return true
	case kithv1.JobService_SubmitJob_FullMethodName, kithv1.BagService_SubmitBag_FullMethodName:
		return false
	}
	if strings.HasPrefix(method, "/"+healthv1.Health_ServiceDesc.ServiceName+"/") {
		return true
	}
	return c.Proof == identity.PeerCredential
}

// admit returns an error if a request is one too many.
func (u *userRates) admit(ctx context.Context, method string, now time.Time) error {
	c := identity.From(ctx)
	if exempt(c, method) || u.bucketOf(laneOf(ctx), now).AllowN(now, 1) {
		return nil
	}
	if u.refused != nil {
		u.refused(c)
	}
	return api.Refusal(fmt.Errorf("%w: %d, see rates.user", api.ErrRate, u.perSecond))
}

// unary is an interceptor, behind the one that says who calls.
func (u *userRates) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := u.admit(ctx, info.FullMethod, time.Now()); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

// stream is [userRates.unary] for streams: each counts as one request.
func (u *userRates) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := u.admit(stream.Context(), info.FullMethod, time.Now()); err != nil {
		return err
	}
	return next(srv, stream)
}
