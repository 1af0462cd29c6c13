package api

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"kith/cluster/wire"
	kithv1 "kith/proto/gen/kith/v1"
)

// checkBounds returns what of a request breaks a bound of its field, as an error that
// names the fields. A submission is told of it with all else that is wrong with it, see
// [Server.submission].
func checkBounds(req any) error {
	m, ok := req.(proto.Message)
	if _, submits := req.(*kithv1.SubmitJobRequest); !ok || submits {
		return nil
	}
	if f := breaches(m); len(f) > 0 {
		return f
	}
	return nil
}

func breaches(m proto.Message) (f fieldErrors) {
	for _, b := range wire.Check(m) {
		f.add(b.Field, b.Reason)
	}
	return f
}

// addNew adds what says something about a field of which nothing is said yet.
func (f *fieldErrors) addNew(more fieldErrors) {
	said := make(map[string]bool)
	for _, e := range *f {
		said[e.Field] = true
	}
	for _, e := range more {
		if !said[e.Field] {
			*f = append(*f, e)
		}
	}
}

// checkedStream refuses messages that break a bound.
type checkedStream struct{ grpc.ServerStream }

// RecvMsg implements grpc.ServerStream.
func (s checkedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return checkBounds(m)
}
