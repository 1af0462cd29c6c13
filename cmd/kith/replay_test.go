package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/cli"
)

// traces is where the public logs and the schedules others agree on lie.
const traces = "../../../shared/traces"

// TestReplayOracles replays published logs with the command line and demands,
// byte for byte, the schedules that independent simulators agree on.
func TestReplayOracles(t *testing.T) {
	for name, args := range map[string]string{
		"ctc":             "--trace CTC-SP2-1996-3.1-cln.swf.gz --processors 338",
		"ctc-5k-p430":     "--trace CTC-SP2-1996-3.1-cln.swf.gz --processors 430 --jobs 5000",
		"ctc-5k-p430-x17": "--trace CTC-SP2-1996-3.1-cln.swf.gz --processors 430 --jobs 5000 --scale-runtime 1.7",
		"kth-5k":          "--trace KTH-SP2-1996-2.1-cln.swf.gz --jobs 5000",
	} {
		schedules, err := filepath.Glob(filepath.Join(traces, "oracle", name+".*.csv.gz"))
		if err != nil || len(schedules) == 0 {
			t.Skipf("no schedules of %s in %s/oracle: this test needs the shared traces beside the repository", name, traces)
		}
		for _, path := range schedules {
			policy := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), name+"."), ".csv.gz")
			t.Run(name+"/"+policy, func(t *testing.T) {
				t.Parallel()
				if testing.Short() && name == "ctc" && policy == "cons-compress" {
					t.Skip("left out with -short: the whole log takes a second")
				}
				out := filepath.Join(t.TempDir(), "schedule.csv")
				line := append([]string{"replay", "--policy", policy, "--schedule", out}, strings.Fields(args)...)
				for i := range line {
					if line[i] == "--trace" {
						line[i+1] = filepath.Join(traces, line[i+1])
					}
				}
				var stdout, stderr bytes.Buffer
				if code := run(context.Background(), line, strings.NewReader(""), &stdout, &stderr); code != cli.ExitOK || stderr.Len() > 0 {
					t.Fatalf("exit code %d: %s", code, &stderr)
				}
				got, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				if want := unpack(t, path); !bytes.Equal(got, want) {
					t.Errorf("the schedule of %d bytes is not the one of %d bytes in %s", len(got), len(want), path)
				}
			})
		}
	}
}

func unpack(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no %s: this test needs the shared traces beside the repository", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // Only read from.
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A log that was copied in part says how far it goes.
func TestReplayTruncatedLog(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range 5000 {
		if _, err := io.WriteString(z, "1 0 -1 100 6 -1 -1 6 100 -1 1 1 1 -1 -1 -1 -1 -1\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.swf.gz")
	if err := os.WriteFile(path, packed.Bytes()[:packed.Len()-8], 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), []string{"replay", "--trace", path}, strings.NewReader(""), &stdout, &stderr)
	if want := "kith: --trace " + path + ": after line 5000: the compressed data are cut off; copy the file again\n"; code != cli.ExitRefused || stderr.String() != want || stdout.Len() > 0 {
		t.Errorf("exit code %d, %q, want %q", code, stderr.String(), want)
	}
}

// A replay that fails leaves the schedule of the last one alone.
func TestFailedReplayKeepsTheOldFile(t *testing.T) {
	dir := t.TempDir()
	trace, old := filepath.Join(dir, "endless.swf"), filepath.Join(dir, "old.csv")
	text := strings.Repeat("1 0 -1 300000000 1 -1 -1 1 300000000 -1 1 1 1 -1 -1 -1 -1 -1\n", 60)
	if err := errors.Join(os.WriteFile(trace, []byte(text), 0o600), os.WriteFile(old, []byte("last month"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"replay", "--trace", trace, "--processors", "1", "--schedule", old}, strings.NewReader(""), &stdout, &stderr)
	if code != cli.ExitRefused || !strings.Contains(stderr.String(), "does not end within 292 years") {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	if b, err := os.ReadFile(old); err != nil || string(b) != "last month" {
		t.Errorf("the old schedule is %q, %v", b, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("the folder holds %v, %v", list, err)
	}
}
