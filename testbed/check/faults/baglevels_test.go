package faults

import "testing"

// TestLeveledBagSchedules is a short form of "kith-lab faults --bags --levels".
func TestLeveledBagSchedules(t *testing.T) {
	searchFor(t, Search{Seeds: short(60), FirstSeed: *firstSeed, Bags: true, Levels: true, Workers: 2}, []Kind{Crash, Reboot, Cut, FullDisk})
}

// Bags of a hierarchy are read as they were written, and what a schedule has beside them is that of the
// same seed without levels.
func TestLeveledBagTextForm(t *testing.T) {
	ranks, bags := 0, 0
	for seed := range uint64(200) {
		s, without := LeveledBags(seed, Size{}), Bagged(seed, Size{})
		if len(s.Bags) != len(without.Bags) || len(s.Jobs) != len(without.Jobs) || len(s.Acts) != len(without.Acts) || len(s.Faults) != len(without.Faults) || s.End != without.End {
			t.Errorf("seed %d: with levels it is another schedule", seed)
		}
		again := readBack(t, seed, s.String())
		for i := range again.Sites {
			ranks += min(again.Sites[i].Rank, 1)
		}
		for i := range again.Bags {
			bags += again.Bags[i].Level
		}
	}
	if ranks < 400 || bags < 200 {
		t.Errorf("%d levels, %d bags of them", ranks, bags)
	}
}

// What sites of a level come and go does not change the limit that tasks of a bag have there: a host
// would have them in two stocks, and count those of one when the policies of the bag are asked.
func TestLeveledBagKeepsItsShape(t *testing.T) {
	plays(t, `run seed=3552 end=30m0s scheme=k-dual rank=work latency=10ms jitter=0s sync=2ms sync-jitter=0s
site s2 processors=3 backfill=easy queues=dual-backfill scope=all level=3 use=21m0s stay=21m0s
site s3 processors=6 backfill=easy queues=dual-backfill scope=all level=3 use=1h0m0s stay=2h0m0s
site s4 processors=2 backfill=easy queues=dual-backfill scope=all level=2 use=1m20s stay=22m40s
bag 2 at=13m36s from=s4 tasks=5 processors=1 copies=0 run=2m39s walltime=28.3895s on-site-lost=rerun level=1
act policy-bag 2 at=13m38.104s policies=2
fault one-way s4 s3 before=task-verdict@s4 nth=11 for=2m0s
`)
}
