package chaos

import (
	"context"
	"os"
	"strconv"
	"strings"

	kithv1 "kith/proto/gen/kith/v1"
)

// sumWork says how much the sites had to do for a job. The site that was dead has
// counted only since it came back.
func (r *scaleRun) sumWork(ctx context.Context) error {
	var copies, withdrawn, messages int64
	var cpu float64
	for i, n := range r.fed.Nodes() {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		s, err := n.Sites.GetSite(limited, &kithv1.GetSiteRequest{})
		cancel()
		if err != nil {
			return err
		}
		c := s.GetCounters()
		copies += c.GetCopiesQueued()
		withdrawn += c.GetWithdrawals()
		messages += c.GetClaimMessagesWire()
		used := cpuSeconds(n.PID())
		if i < r.healthy {
			cpu += used
		}
		r.note("%s: %d jobs started, %d of others; %d copies taken, %d refused, %d withdrawn; claims: %d granted, %d denied, %d timed out; %.1f s of CPU",
			n.Name, c.GetAttemptsStarted(), c.GetAttemptsStartedRemote(), c.GetCopiesQueued(), c.GetCopiesRefused(), c.GetWithdrawals(),
			c.GetClaimsGranted(), c.GetClaimsDenied(), c.GetClaimsTimedOut(), used)
	}
	jobs := float64(r.opt.Jobs)
	r.report.CopiesPerJob, r.report.WithdrawnPerJob = float64(copies)/jobs, float64(withdrawn)/jobs
	r.report.MessagesPerJob, r.report.CPUPerJob = float64(messages)/jobs, cpu/jobs
	return nil
}

// cpuSeconds returns how long a process has computed, 0 if it is gone.
func cpuSeconds(pid int) float64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest) // from the third field on: the 14th and 15th are user and system time
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	const ticks = 100 // a second, on every Linux
	return (user + system) / ticks
}
