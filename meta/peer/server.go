package peer

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

var _ kithv1.PeerServiceServer = (*Links)(nil)

// Connect serves a stream that another site dialled.
func (l *Links) Connect(g grpc.BidiStreamingServer[kithv1.ConnectRequest, kithv1.ConnectResponse]) error {
	if l.ctx.Err() != nil {
		return status.Error(codes.Unavailable, "site is shutting down")
	}
	l.wg.Add(1)
	defer l.wg.Done()
	// A stream ends with its caller or with this site, whichever is first.
	ctx, cancel := context.WithCancel(g.Context())
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()

	address := ""
	if p, ok := peer.FromContext(g.Context()); ok {
		address = p.Addr.String()
	}
	var proven job.SiteID
	if l.cfg.Proven != nil {
		var ok bool
		if proven, ok = l.cfg.Proven(g.Context()); !ok {
			return status.Error(codes.Unauthenticated, "the connection has not proved a site")
		}
	}
	w := serverWire{g}
	first, err := l.firstFrame(ctx, w, address)
	if err != nil {
		return toStatus(err)
	}
	hello, err := l.greet(first, proven)
	if err != nil {
		l.troubles.refused(first, address, err)
		l.tellRefusal(Refusal{What: WhatHello, Address: address, Claimed: claimedIn(first), Err: err})
		return toStatus(err)
	}
	if err := l.paceStream(ctx, job.SiteID(hello.GetSiteId())); err != nil {
		return toStatus(err)
	}
	if err := w.send(&kithv1.Frame{Messages: []*kithv1.PeerMessage{l.hello(job.SiteID(hello.GetSiteId()))}}); err != nil {
		return err
	}
	return toStatus(l.run(ctx, w, hello, false, address))
}

type serverWire struct {
	g grpc.BidiStreamingServer[kithv1.ConnectRequest, kithv1.ConnectResponse]
}

func (w serverWire) send(f *kithv1.Frame) error {
	return w.g.Send(&kithv1.ConnectResponse{Frame: f})
}

func (w serverWire) recv() (*kithv1.Frame, error) {
	r, err := w.g.Recv()
	return r.GetFrame(), err
}

// toStatus is the table of what a refused peer is told.
func toStatus(err error) error {
	for sentinel, code := range map[error]codes.Code{
		ErrNotAdmitted: codes.PermissionDenied, ErrOtherSite: codes.FailedPrecondition, ErrProtocol: codes.FailedPrecondition,
		ErrDuplicate: codes.AlreadyExists, ErrMessage: codes.InvalidArgument, job.ErrBadSiteID: codes.InvalidArgument,
		ErrSlow: codes.ResourceExhausted, ErrSilent: codes.DeadlineExceeded, ErrReplaced: codes.Aborted,
		ErrClash: codes.FailedPrecondition, ErrNoHello: codes.DeadlineExceeded, ErrManyWaiting: codes.ResourceExhausted,
		ErrRate: codes.ResourceExhausted, ErrBehind: codes.FailedPrecondition, ErrOutdated: codes.Aborted, ErrFolder: codes.FailedPrecondition,
	} {
		if errors.Is(err, sentinel) {
			return status.Error(code, err.Error())
		}
	}
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Unavailable, "stream ended")
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, "stream ended")
}
