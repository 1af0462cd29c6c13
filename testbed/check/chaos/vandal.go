package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	kithv1 "kith/proto/gen/kith/v1"
)

// A vandal is a job that damages the folder of its own attempt and waits for a moment, in
// which its site may be killed or started. What becomes of it is its own trouble, but it ends,
// starts once, harms no other job and no site, and brings no file home that a link leads to.

// The files of an attempt, in its folder $A, and what a vandal puts in their place. $CHAOS_SECRET
// is a file of the site's account that no job may bring home by a link.
var (
	vandalFiles  = []string{"work", "work/.kith/script", "work/out.txt", "stdout", "stderr", "record", "payload", "lease", "stop", "tmp"}
	vandalPlants = []string{`mkfifo "$f"`, `ln -s "$CHAOS_SECRET" "$f"`, `ln -s . "$f"`, `ln -s /dev/zero "$f"`, `mkdir "$f"`, `: >"$f"`, `true`}
	vandalDeeds  = []string{
		`rm -rf "$A"`,
		`rm -rf "$A"/*`,
		`rm -rf "$A"/*; mkdir "$A/work"; ln -s "$CHAOS_SECRET" "$A/work/out.txt"`,
		`chmod 000 .`,
		`chmod 000 "$A"`,
		`chmod -R 000 "$A"`,
		`mv "$A/work" "$A/elsewhere"; ln -s elsewhere "$A/work"; ln -s "$CHAOS_SECRET" "$A/elsewhere/out.txt"`,
		`ln -s "$CHAOS_SECRET" out.txt; rm "$A/stdout" "$A/stderr"; ln -s "$CHAOS_SECRET" "$A/stdout"; ln -s "$CHAOS_SECRET" "$A/stderr"`,
		`for f in "$A"/*; do rm -rf "$f"; mkfifo "$f"; done`,
	}
)

// secretText is what $CHAOS_SECRET has.
const secretText = "a file of the account that runs the sites\n"

// vandalPause is how long a vandal waits at most after its deed.
const vandalPause = 3 * time.Second

// damage draws what a vandal does.
func damage(r *rand.Rand) string {
	if n := r.IntN(len(vandalFiles) + len(vandalDeeds)); n < len(vandalDeeds) {
		return vandalDeeds[n]
	}
	return `f="$A/` + vandalFiles[r.IntN(len(vandalFiles))] + `"; rm -rf "$f"; ` + vandalPlants[r.IntN(len(vandalPlants))]
}

// vandalize makes a job a vandal.
func (m *maker) vandalize(t *task) {
	t.vandal, t.policy, t.duration = true, kithv1.Job_ON_SITE_LOST_WAIT, m.lasting(kithv1.Job_ON_SITE_LOST_WAIT)
	t.duration = min(t.duration, vandalPause)
	t.job.OnSiteLost, t.job.Processors = t.policy, 1
	t.job.Environment["CHAOS_SECRET"] = m.folders.secret
	delete(t.job.Environment, "CHAOS_RACE")
	t.job.Outputs = []*kithv1.OutputFile{{Path: "out.txt"}}
	t.job.Script = "#!/bin/sh\n" + sign +
		"echo \"end $KITH_ATTEMPT $KITH_SITE\" >>\"$CHAOS_LEDGER\"\n" + // it may not come to that later
		"A=$(cd .. && pwd)\n" + damage(m.rng) + fmt.Sprintf("\nsleep %.2f\n", t.duration.Seconds())
}

// vandal checks what became of one.
func (c *checker) vandal(j *submitted, now *kithv1.Job, content func(string) (string, error)) {
	r := c.result
	r.Jobs.Vandals++
	if j.ended != nil && !sameEnd(j.ended.GetStatus(), now.GetStatus()) {
		c.problem(&r.ChangedOutcomes, "job %s: ended as %s, and later as %s", j.id, brief(j.ended.GetStatus()), brief(now.GetStatus()))
	}
	for _, path := range []string{"stdout", "stderr", "out.txt"} {
		if got, err := content(path); err == nil && got == c.secret {
			c.problem(&r.OtherProblems, "job %s brought a file of the account of %s home as %s", j.id, now.GetStatus().GetHostSiteId(), path)
		}
	}
}
