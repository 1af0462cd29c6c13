package executor

import (
	"bytes"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kith/internal/job"
	"kith/internal/jobfile"
	"kith/sitesched/work"
)

// plainForks forks, executes and collects /bin/true n times, with two callers:
// what the machine can do without an executor.
func plainForks(b *testing.B, n int) {
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			for range n / 2 {
				pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{
					Env: os.Environ(), Files: []uintptr{0, 1, 2},
				})
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = syscall.Wait4(pid, nil, 0, nil)
			}
		})
	}
	callers.Wait()
}

func BenchmarkTrueJobs(b *testing.B) {
	for _, forget := range []bool{false, true} {
		name := "keep"
		if forget {
			name = "forget"
		}
		b.Run(name, func(b *testing.B) { benchmarkTrueJobs(b, forget) })
	}
}

func benchmarkTrueJobs(b *testing.B, forget bool) {
	const slots = 16
	free := make(chan struct{}, slots)
	var x *Executor
	x, err := Open(Config{
		Dir: b.TempDir(), Processors: slots, ShimPath: shimBinary(b), Logger: slog.New(slog.DiscardHandler),
	}, func(ev work.Event) {
		if done, ok := ev.(work.Finished); ok {
			if done.Outcome.Kind != job.Success {
				b.Errorf("%+v", done.Outcome)
			}
			if forget {
				x.Forget(done.Attempt)
			}
			free <- struct{}{}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	for range slots {
		free <- struct{}{}
	}
	n := 0
	drive := func(jobs int) {
		for range jobs {
			<-free
			n++
			x.Start(work.Spec{Attempt: number(n), Argv: []string{"/bin/true"}, Processors: 1, Walltime: time.Minute})
		}
		for range slots {
			<-free
		}
		for range slots {
			free <- struct{}{}
		}
	}
	drive(200)
	// The machine may have other work: measure both in turns, so that it slows
	// both, and count processor time beside the wall clock.
	const round = 500
	var plain, ours, plainCPU, oursCPU time.Duration
	forks, jobs := 0, 0
	b.ResetTimer()
	for jobs < b.N {
		count := min(round, b.N-jobs)
		begin, cpu := time.Now(), processorTime(b)
		drive(count)
		ours, oursCPU = ours+time.Since(begin), oursCPU+processorTime(b)-cpu
		jobs += count
		b.StopTimer()
		begin, cpu = time.Now(), processorTime(b)
		plainForks(b, round)
		plain, plainCPU = plain+time.Since(begin), plainCPU+processorTime(b)-cpu
		forks += round
		b.StartTimer()
	}
	rate, plainRate := float64(jobs)/ours.Seconds(), float64(forks)/plain.Seconds()
	b.ReportMetric(rate, "jobs/s")
	b.ReportMetric(plainRate, "forks/s")
	b.ReportMetric(rate/plainRate, "ratio")
	b.ReportMetric(float64(oursCPU.Microseconds())/float64(jobs), "cpu-µs/job")
	b.ReportMetric(float64(plainCPU.Microseconds())/float64(forks), "cpu-µs/fork")
}

// processorTime is the user and system time of this process, of the processes it
// has collected, and of its living children with what those have collected.
func processorTime(b *testing.B) time.Duration {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	for _, pid := range childrenOf(os.Getpid()) {
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, field := range fields[14-3 : 14-3+4] {
			ticks, _ := strconv.Atoi(field)
			sum += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return sum
}

// childrenOf lists the living children of a process.
func childrenOf(pid int) []int {
	var list []int
	for _, candidate := range processes() {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(candidate) + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 20 && fields[1] == strconv.Itoa(pid) {
			list = append(list, candidate)
		}
	}
	return list
}

func BenchmarkStartLatency(b *testing.B) {
	begun := make(chan time.Time, 1)
	over := make(chan struct{}, 1)
	x, err := Open(Config{Dir: b.TempDir(), Processors: 4, ShimPath: shimBinary(b)}, func(ev work.Event) {
		switch ev.(type) {
		case work.Started:
			begun <- time.Now()
		case work.Finished:
			over <- struct{}{}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	var sum time.Duration
	n := 0
	for b.Loop() {
		n++
		begin := time.Now()
		x.Start(work.Spec{Attempt: number(n), Argv: []string{"/bin/true"}, Processors: 1})
		sum += (<-begun).Sub(begin)
		<-over
		x.Forget(number(n))
	}
	b.ReportMetric(float64(sum.Microseconds())/float64(n), "µs/start")
}

// BenchmarkFolders is what the folder of an attempt costs that leaves it as it was, without
// and with the mark that one of another origin has.
func BenchmarkFolders(b *testing.B) {
	for _, marked := range []bool{false, true} {
		b.Run(map[bool]string{false: "plain", true: "marked"}[marked], func(b *testing.B) {
			f, err := openFolders(b.TempDir() + "/attempts")
			if err != nil {
				b.Fatal(err)
			}
			defer f.lock.Close() //nolint:errcheck // the folder goes
			for b.Loop() {
				if err := f.prepare("a.1.1-1"); err != nil {
					b.Fatal(err)
				}
				if marked {
					if err := jobfile.Replace(f.dir, "a.1.1-1/"+markName, []byte("mark")); err != nil {
						b.Fatal(err)
					}
				}
				if err := f.remove("a.1.1-1"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
