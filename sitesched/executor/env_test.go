package executor

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/sitesched/work"
)

func TestEnvironment(t *testing.T) {
	e := environment{host: "node1", user: "kith", lang: "C.UTF-8"}
	spec := work.Spec{
		Attempt: number(17), Processors: 8, Tasks: 2, MemoryBytes: 3<<30 + 5, Walltime: 90 * time.Second,
		Name: "my job", User: "mira", OriginSite: "uni-a", HostSite: "uni-b", SubmitDirectory: "/home/mira/run",
		Env: map[string]string{
			"PATH": "/opt/bin", "FOO": "bar=baz", "EMPTY": "", "HOME": "/home/mira",
			"SLURM_JOB_ID": "1", "KITH_SITE": "forged", "KITH_MEMORY_BYTES": "1",
			"SLURM_ARRAY_TASK_ID": "4", "SLURM_WHATEVER": "kept",
		},
	}
	base := map[string]string{
		"PATH": defaultPath, "HOME": "/d/work", "TMPDIR": "/d/tmp", "USER": "kith", "LOGNAME": "kith",
		"SHELL": "/bin/sh", "LANG": "C.UTF-8",
	}
	facts := map[string]string{
		"SLURM_JOB_ID": "uni-a.7.17", "SLURM_JOBID": "uni-a.7.17", "SLURM_JOB_NAME": "my job", "SLURM_JOB_USER": "mira",
		"SLURM_SUBMIT_DIR": "/home/mira/run", "SLURM_CPUS_PER_TASK": "4", "SLURM_NTASKS": "2", "SLURM_NPROCS": "2",
		"SLURM_TASKS_PER_NODE": "2", "SLURM_JOB_NUM_NODES": "1", "SLURM_NNODES": "1", "SLURM_NODEID": "0",
		"SLURM_JOB_CPUS_PER_NODE": "8", "SLURM_CPUS_ON_NODE": "8", "SLURM_MEM_PER_NODE": "3072",
		"SLURM_JOB_NODELIST": "node1", "SLURM_NODELIST": "node1", "SLURMD_NODENAME": "node1", "SLURM_CLUSTER_NAME": "uni-b",
		"KITH_JOB_ID": "uni-a.7.17", "KITH_ATTEMPT": "uni-a.7.17#1", "KITH_JOB_NAME": "my job", "KITH_USER": "mira",
		"KITH_ORIGIN": "uni-a", "KITH_SITE": "uni-b", "KITH_PROCESSORS": "8", "KITH_TASKS": "2",
		"KITH_MEMORY_BYTES": "3221225477", "KITH_WALLTIME_SECONDS": "90", "KITH_SUBMIT_DIR": "/home/mira/run",
		"KITH_WORK_DIR": "/d/work",
	}
	want := maps.Clone(base)
	maps.Copy(want, map[string]string{
		"PATH": "/opt/bin", "FOO": "bar=baz", "EMPTY": "", "HOME": "/home/mira", "SLURM_ARRAY_TASK_ID": "4", "SLURM_WHATEVER": "kept",
	})
	maps.Copy(want, facts)
	checkEnvironment(t, "full", e.build(&spec, "/d"), want)

	// What the job does not have cannot be forged, and what it need not say has a default.
	plain := work.Spec{
		Attempt: number(17), Name: "x", User: "mira", OriginSite: "uni-a", HostSite: "uni-b", SlurmJobID: "99",
		Account: &work.Account{UID: 1001}, Env: map[string]string{"SLURM_MEM_PER_NODE": "1", "KITH_WALLTIME_SECONDS": "1"},
	}
	want = maps.Clone(base)
	maps.Copy(want, facts)
	for _, name := range []string{"SLURM_MEM_PER_NODE", "KITH_MEMORY_BYTES", "KITH_WALLTIME_SECONDS"} {
		delete(want, name)
	}
	maps.Copy(want, map[string]string{
		"USER": "1001", "LOGNAME": "1001", "SLURM_JOB_ID": "99", "SLURM_JOBID": "99", "SLURM_JOB_NAME": "x", "KITH_JOB_NAME": "x",
		"SLURM_SUBMIT_DIR": "/d/work", "KITH_SUBMIT_DIR": "/d/work", "SLURM_CPUS_PER_TASK": "1", "SLURM_NTASKS": "1",
		"SLURM_NPROCS": "1", "SLURM_TASKS_PER_NODE": "1", "SLURM_JOB_CPUS_PER_NODE": "1", "SLURM_CPUS_ON_NODE": "1",
		"KITH_PROCESSORS": "1", "KITH_TASKS": "1",
	})
	checkEnvironment(t, "plain", e.build(&plain, "/d"), want)
	plain.Account.Name = "lokal"
	if env := e.build(&plain, "/d"); !slices.Contains(env, "USER=lokal") {
		t.Errorf("the account's name is not in %q", env)
	}
}

func checkEnvironment(t *testing.T, name string, env []string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, v := range env {
		k, value, _ := strings.Cut(v, "=")
		if _, twice := got[k]; twice {
			t.Errorf("%s: %s comes twice", name, k)
		}
		got[k] = value
	}
	for k := range want {
		if v, ok := got[k]; !ok || v != want[k] {
			t.Errorf("%s: %s=%q, %v; want %q", name, k, v, ok, want[k])
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: unexpected %s=%q", name, k, got[k])
		}
	}
}

// TestEnvironmentOfARealJob makes sure that nothing of the daemon's own gets in.
func TestEnvironmentOfARealJob(t *testing.T) {
	t.Setenv("SECRET_OF_THE_DAEMON", "x")
	b := openBench(t, Config{})
	spec := shell(1, "env; pwd")
	spec.Env = map[string]string{"MINE": "two\nlines"}
	b.run(spec)
	out := readFile(b.StdoutPath(number(1)))
	for _, want := range []string{"MINE=two\nlines\n", "KITH_JOB_ID=uni-a.7.1\n", "HOME=" + b.WorkPath(number(1)) + "\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	if strings.Contains(out, "SECRET") || strings.Contains(out, "GOMAXPROCS") {
		t.Errorf("too much in %s", out)
	}
	if want := b.WorkPath(number(1)) + "\n"; !strings.HasSuffix(out, want) {
		t.Errorf("the working directory is not %s", filepath.Clean(want))
	}
}
