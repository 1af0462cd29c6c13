package runner

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// None of the files of what this site has not accepted is asked for, nor written.
func TestNoFilesOfWhatWasNotAccepted(t *testing.T) {
	t.Parallel()
	s := newStaging(t)
	var p kithv1.Payload
	if err := proto.Unmarshal(s.payload, &p); err != nil {
		t.Fatal(err)
	}
	p.Job.WorkingDirectory = "/etc"
	launch := s.launch()
	var err error
	if launch.Payload, err = proto.Marshal(&p); err != nil {
		t.Fatal(err)
	}
	s.Launch(launch)
	if got := s.outcome(); got.Kind != job.Failure || !strings.Contains(got.Reason, "job.working_directory") {
		t.Errorf("%+v", got)
	}
	if n := s.asked.Load(); n > 0 {
		t.Errorf("its files were asked for %d times", n)
	}
}
