package api

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
	"kith/store"
)

// SaltBytes is how long the salt of a site is, in bytes, see [Node.Salt].
const SaltBytes = 16

// ListHistory implements kithv1.SiteServiceServer. It reads the disk and asks nothing of the
// loop.
func (s *Server) ListHistory(ctx context.Context, r *kithv1.ListHistoryRequest) (*kithv1.ListHistoryResponse, error) {
	if err := commands(ctx); err != nil {
		return nil, err
	}
	size, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	from := uint64(0)
	if text := r.GetPageToken(); text != "" {
		if from, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, &FieldError{Field: "page_token", Reason: "is not one that ListHistory returned", Err: err}
		}
	}
	salt, err := s.Node.Salt()
	if err != nil {
		return nil, err
	}
	list, err := s.Node.Past(from)
	if err != nil {
		return nil, err
	}
	if r.GetPageToken() == "" {
		s.told(ctx, "history is read")
	}
	resp, names, bytes := &kithv1.ListHistoryResponse{}, newPseudonyms(salt), 0
	for i := range list {
		if i == size || bytes >= pageBytes {
			resp.NextPageToken = strconv.FormatUint(list[i].Number, 10)
			return resp, nil
		}
		if list[i].Drained() {
			continue
		}
		m := names.attempt(&list[i])
		bytes += proto.Size(m)
		resp.Attempts = append(resp.Attempts, m)
	}
	if len(list) == store.PastStretch { // there may be more, or the next page is empty
		resp.NextPageToken = strconv.FormatUint(list[len(list)-1].Number+1, 10)
	}
	return resp, nil
}

// pseudonyms makes numbers of users and names: the same of the same, as long as the salt is
// the same. Who does not know the salt cannot try names.
type pseudonyms struct{ mac hash.Hash }

func newPseudonyms(salt []byte) pseudonyms { return pseudonyms{hmac.New(sha256.New, salt)} }

// number returns 1 to 2^53 - 1, which every program can hold, also one that counts in
// floating point. Kind keeps users and names apart. Of 10,000 texts two have the same number
// with a probability of 1 in 180 million.
func (p pseudonyms) number(kind byte, origin job.SiteID, text []byte) int64 {
	p.mac.Reset()
	p.mac.Write([]byte{kind, byte(len(origin))})
	p.mac.Write([]byte(origin))
	p.mac.Write(text)
	sum := p.mac.Sum(nil)
	return max(1, int64(binary.BigEndian.Uint64(sum)>>11)) //nolint:gosec // 53 bits
}

// The kinds of texts that have numbers. They are frozen: numbers stay the same over versions.
const (
	userNumber = 1
	nameNumber = 2
)

// endStates are those in which a job of an outcome ends.
var endStates = map[job.OutcomeKind]kithv1.JobStatus_State{
	job.Success: kithv1.JobStatus_STATE_COMPLETED, job.Failure: kithv1.JobStatus_STATE_FAILED, job.Timeout: kithv1.JobStatus_STATE_TIMEOUT,
	job.Cancel: kithv1.JobStatus_STATE_CANCELLED, job.Loss: kithv1.JobStatus_STATE_LOST,
}

// attempt says nothing of whose it was but numbers.
func (p pseudonyms) attempt(a *store.Past) *kithv1.PastAttempt {
	m := &kithv1.PastAttempt{
		OriginSiteId: string(a.Origin), HostSiteId: string(a.Site), Processors: a.Processors,
		UserNumber: p.number(userNumber, a.Origin, []byte(a.User)),
		Walltime:   durationpb.New(a.Limit), RunTime: durationpb.New(a.Run),
		SubmitTime: stamp(a.Submitted), StartTime: stamp(a.Started), EndTime: stamp(a.Ended), State: endStates[a.Kind],
	}
	if a.Name != 0 {
		m.NameNumber = p.number(nameNumber, a.Origin, binary.BigEndian.AppendUint64(nil, a.Name))
	}
	return m
}
