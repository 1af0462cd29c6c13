package api

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"kith/cluster/wire"
	kithv1 "kith/proto/gen/kith/v1"
)

// checkBounds returns what of a request breaks a bound of its field, as an error that
// names the fields. A submission is told of it with all else that is wrong with it, see
// [checkSubmission] and [checkBagRequest].
func checkBounds(req any) error {
	switch req.(type) {
	case *kithv1.SubmitJobRequest, *kithv1.SubmitBagRequest:
		return nil
	}
	m, ok := req.(proto.Message)
	if !ok {
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

// addNew adds what says something about a field of which, and of what it is in, nothing
// is said yet.
func (f *fieldErrors) addNew(more fieldErrors) {
	said := make(map[string]bool)
	for _, e := range *f {
		said[e.Field] = true
	}
	for _, e := range more {
		known := said[e.Field]
		for at, c := range e.Field {
			known = known || c == '.' && said[e.Field[:at]]
		}
		if !known {
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
