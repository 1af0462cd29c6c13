package faults

import (
	"testing"
)

// TestMemberedSchedules is a short form of "kith-lab faults --members".
func TestMemberedSchedules(t *testing.T) {
	searchFor(t, Search{Seeds: short(20), FirstSeed: *firstSeed, Members: true, Workers: 2}, append(MemberKinds(), Crash, Freeze))
}

// Members have draws of their own: what a schedule has beside them is that of the same seed
// without.
func TestMemberedTextForm(t *testing.T) {
	for seed := range uint64(200) {
		with, without := Membered(seed, Size{}), wideAlone(seed, Size{})
		if seed%2 == 0 {
			without = Random(seed, Size{})
		}
		text := with.String()
		if len(with.Faults) <= len(without.Faults) {
			t.Errorf("seed %d: no faults of members", seed)
		}
		for i := range with.Sites {
			with.Sites[i].Members, with.Sites[i].Clocks = 0, 0
		}
		with.Faults = with.Faults[:min(len(with.Faults), len(without.Faults))]
		if got, want := with.String(), without.String(); got != want {
			t.Errorf("seed %d: beside its members it is another schedule\n%s\nwithout them\n%s", seed, got, want)
		}
		readBack(t, seed, text)
	}
}

// A leader that is cut off from the other members, and from nobody else, is asked by clients and
// claimed from by hosts while another one leads. It says nothing.
func TestLeaderThatIsCutOff(t *testing.T) {
	plays(t, `run seed=3 end=10m0s scheme=k-dual rank=work latency=10ms jitter=0s sync=2ms sync-jitter=5ms
site s0 processors=2 members=3 clocks=24h
site s1 processors=4 members=3
stream at=0s every=1s from=s0 processors=1 copies=2 run=3s walltime=10s count=300
stream at=0s every=2s from=s1 processors=1 copies=2 run=3s walltime=10s count=100
fault split s0 at=20s for=40s
fault split s0 before=verdict@s0 nth=20 for=40s
fault split s0 before=reply@s0 nth=90 for=40s
fault freeze s0 before=launch@s0 nth=40 for=30s
fault split s1 before=claim@s1 nth=60 for=30s
`)
}
