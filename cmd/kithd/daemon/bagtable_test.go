package daemon

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	kithv1 "kith/proto/gen/kith/v1"
)

// upload brings a content to the site.
func (s *testSite) upload(content string) string {
	s.t.Helper()
	upload, err := s.files.UploadFile(s.ctx())
	if err != nil {
		s.t.Fatal(err)
	}
	const piece = 256 << 10
	for at := 0; at < len(content); at += piece {
		if err := upload.Send(&kithv1.UploadFileRequest{Data: []byte(content[at:min(len(content), at+piece)])}); err != nil {
			s.t.Fatal(err)
		}
	}
	up, err := upload.CloseAndRecv()
	if err != nil {
		s.t.Fatal(err)
	}
	return up.GetUploadId()
}

// The tasks of a table that was uploaded get their rows, at their origin and elsewhere, also
// when the origin has been restarted; the table itself stays where it is.
func TestBagOfAnUploadedTable(t *testing.T) {
	t.Parallel()
	sites := federation(t, nil, "alpha", "beta")
	s := sites[0]
	const n = 40
	text := "x,long\n"
	for i := range n {
		text += fmt.Sprintf("%d,%s\n", 1000+i, strings.Repeat("l", 3000))
	}
	ran := filepath.Join(t.TempDir(), "ran")
	b := noting(ran, `echo "$1 ${#KITH_PARAM_LONG}"; sleep 0.3`, 1)
	b.Parameters = &kithv1.Bag_Table{Table: &kithv1.TaskTable{Format: kithv1.TaskTable_FORMAT_CSV, Content: &kithv1.TaskTable_UploadId{UploadId: s.upload(text)}}}
	id := s.submitBag(b)
	s.restart()
	s.endsBag(id)
	onceEach(t, ran, n)
	for i, out := range s.taskOutput(id, "") {
		if out != fmt.Sprintf("%d 3000\n", 1000+i) {
			t.Errorf("task %d wrote %q", i, out)
		}
	}
	if at := s.tasksAt(id); at["alpha"] == 0 || at["beta"] == 0 {
		t.Errorf("tasks ran at %v", at)
	}
	if left, err := filepath.Glob(filepath.Join(sites[1].cfg.Data, "blobs", "chunks", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("chunks at beta: %v, %v", left, err)
	}
}
