package e2e

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// engineFault is something that a container engine can do to a site.
type engineFault struct {
	name string
	// away says that the site does not answer meanwhile.
	away bool
	do   func(s site)
	undo func(s site)
}

func (b *bed) engineFaults() []engineFault {
	wan := func() string { return container("wan") }
	network := func(s site) string { return "kith-testbed_" + s.name }
	return []engineFault{
		{
			name: "disconnect",
			do:   func(s site) { b.docker("network", "disconnect", network(s), wan()) },
			undo: func(s site) { b.docker("network", "connect", "--alias", "wan", network(s), wan()) },
		},
		{
			name: "pause", away: true,
			do:   func(s site) { b.docker("pause", container(s.name)) },
			undo: func(s site) { b.docker("unpause", container(s.name)) },
		},
		{
			name: "kill the daemon",
			do:   func(s site) { b.exec(s.name, "/bin/sh", "-c", "kill -9 $(pidof kithd)") },
			undo: func(site) {},
		},
		{
			name: "kill the container", away: true,
			do:   func(s site) { b.docker("kill", container(s.name)) },
			undo: func(s site) { b.docker("start", container(s.name)) },
		},
	}
}

// chaos lets the engine disconnect, pause and kill sites, one after the other,
// while jobs are submitted at the others. A job may be lost only if its host's
// container was killed.
func (b *bed) chaos() {
	const rounds, seed = 12, 1
	rng := rand.New(rand.NewPCG(seed, 0))
	faults := b.engineFaults()
	killed := map[string]bool{}
	var ids []string
	load := func(but string) {
		for range 4 {
			s := sites[rng.IntN(len(sites))]
			if s.name != but {
				ids = append(ids, b.submit(s, 1+rng.IntN(2), fmt.Sprintf("sleep %.1f", 0.2+3*rng.Float64())))
			}
		}
	}
	for n := range rounds {
		f, s := faults[n%len(faults)], sites[rng.IntN(len(sites))]
		lasts := time.Duration(500+rng.IntN(6000)) * time.Millisecond
		b.t.Logf("%s: %s, %v", s.name, f.name, lasts)
		load("")
		f.do(s)
		if f.name == "kill the container" {
			killed[s.name] = true
		}
		but := ""
		if f.away || f.name == "kill the daemon" {
			but = s.name
		}
		load(but)
		time.Sleep(lasts)
		f.undo(s)
		b.eventually(s.name+" answers", func() bool {
			var r struct{}
			return b.call(s, "grpc.health.v1.Health/Check", struct{}{}, &r) == nil
		})
	}
	b.connected()
	signed := b.ledger()
	lost := 0
	for _, id := range ids {
		st := b.wait(id, "COMPLETED", "LOST")
		if st.State != "STATE_LOST" {
			continue
		}
		if !killed[st.HostSiteID] {
			b.t.Errorf("%s is lost, but %s was not killed: %s", id, st.HostSiteID, st.Reason)
		}
		if n := len(signed[b.submitted[id]]); n > 1 {
			b.t.Errorf("%s was started %d times", id, n)
		}
		lost++
		delete(b.submitted, id)
	}
	b.t.Logf("%d faults, %d jobs, %d of them lost with their machine", rounds, len(ids), lost)
}
