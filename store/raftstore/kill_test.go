package raftstore

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/store"
	"kith/store/codec"
	"kith/store/storetest"
)

// processVariable makes the test binary a member that commits whenever it leads, until it is killed.
const processVariable = "KITH_TEST_MEMBER"

func TestMain(m *testing.M) {
	if text := os.Getenv(processVariable); text != "" {
		if err := beMember(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is what a member's process is told.
type process struct {
	Peer
	Folder string
}

func (p process) config() Config {
	return Config{
		Site: "alpha", Cluster: cluster, Peer: p.Peer, Folder: p.Folder, SnapshotEntries: 200, TrailingEntries: 20,
		Dial: func(ctx context.Context, to string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", to)
		},
	}
}

// beMember says each state that it loads, seals and has acknowledged, with the lead that it was in.
func beMember(text string) error {
	var p process
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	cfg := p.config()
	var err error
	if cfg.Listener, err = net.Listen("tcp", p.Address); err != nil {
		return err
	}
	m, err := Open(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // if nobody kills it
	defer cancel()
	for {
		lead, err := m.Lead(ctx)
		if err != nil {
			return err
		}
		if err := commitUntilOver(lead); err != nil {
			return err
		}
	}
}

func commitUntilOver(lead *Lead) error {
	facts, err := lead.Load()
	if err != nil {
		return err
	}
	say := func(what string) {
		fmt.Printf("%d %s %x\n", lead.answers.Lead(), what, sha256.Sum256(codec.Dump(facts)))
	}
	say("loaded")
	rng := rand.New(rand.NewPCG(lead.answers.Lead(), 0))
	for {
		for range 1 + rng.IntN(30) {
			facts.Apply(storetest.Walk(rng, facts)) //nolint:errcheck // a walk takes wrong steps too
		}
		batch := lead.Seal(facts)
		say("sealed")
		err := batch.Commit()
		for err != nil && !store.Void(err) {
			time.Sleep(10 * time.Millisecond)
			err = batch.Commit()
		}
		switch { // the member goes on, whatever the answer
		case errors.Is(err, store.ErrDeposed):
			say("refused")
			return nil
		case store.Void(err): // nobody knows, and the next lead shows it
			return nil
		}
		say("acknowledged")
	}
}

// said is what a member has said of a lead.
type said struct{ what, hash string }

// Three processes over TCP, of which the one that leads is killed at any instant, again and again.
// Each lead begins with what the one before was told that it stands, or with the batch that was on
// its way then.
func TestKilledLeaders(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	dir := t.TempDir()
	var processes []process
	var peers []Peer
	for _, name := range []string{"a", "b", "c"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p := process{Peer{name, l.Addr().String()}, filepath.Join(dir, name)}
		l.Close() // its port is taken again at once
		processes, peers = append(processes, p), append(peers, p.Peer)
	}
	type event struct {
		member int
		lead   uint64
		said
	}
	events := make(chan event, 1000)
	var readers sync.WaitGroup
	running := make([]*exec.Cmd, len(processes))
	start := func(i int) {
		text, err := json.Marshal(processes[i])
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), processVariable+"="+string(text))
		cmd.Stderr = t.Output()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running[i] = cmd
		readers.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				e := event{member: i}
				if words := strings.Fields(lines.Text()); len(words) == 3 {
					fmt.Sscan(words[0], &e.lead) //nolint:errcheck // it was printed so
					e.said = said{words[1], words[2]}
					events <- e
				}
			}
			cmd.Wait() //nolint:errcheck // it was killed
		})
	}
	for i, p := range processes {
		if err := Found(p.config(), peers); err != nil {
			t.Fatal(err)
		}
		start(i)
	}
	leads := make(map[uint64][]said)
	rng := rand.New(rand.NewPCG(0, 0))
	var gaps []time.Duration
	var killed time.Time
	kills := 0
	limit := time.After(3 * time.Minute)
	var kill <-chan time.Time
	leader := -1
loop:
	for {
		select {
		case e := <-events:
			leads[e.lead] = append(leads[e.lead], e.said)
			if e.what != "acknowledged" || kill != nil {
				continue
			}
			if kills > 0 {
				if e.member == leader { // said before it was killed
					continue
				}
				gaps = append(gaps, time.Since(killed))
				start(leader)
			}
			if kills == rounds {
				break loop
			}
			leader = e.member
			kill = time.After(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
		case <-kill:
			running[leader].Process.Kill() //nolint:errcheck // it may have ended
			killed, kill = time.Now(), nil
			kills++
		case <-limit:
			t.Errorf("after 3 minutes %d of %d leaders are killed", kills, rounds)
			break loop
		}
	}
	go func() { // the last words
		for _, cmd := range running {
			cmd.Process.Kill() //nolint:errcheck // it may have ended
		}
		readers.Wait()
		close(events)
	}()
	for e := range events {
		leads[e.lead] = append(leads[e.lead], e.said)
	}
	var numbers []uint64
	for n := range leads {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var may []string // states that the next lead may begin with
	commits, undecided := 0, 0
	for _, n := range numbers {
		for i, s := range leads[n] {
			switch s.what {
			case "loaded":
				if may != nil && !slices.Contains(may, s.hash) {
					t.Errorf("lead %d begins with facts that are neither acknowledged nor were on their way", n)
				}
				if i != 0 {
					t.Errorf("lead %d says %q in the midst", n, s.what)
				}
				if len(may) == 2 && s.hash == may[1] && may[0] != may[1] {
					undecided++
				}
				may = []string{s.hash}
			case "sealed":
				may = append(may[:1:1], s.hash)
			case "acknowledged":
				may = []string{s.hash}
				commits++
			case "refused":
				may = may[:1]
			}
		}
	}
	if commits < rounds {
		t.Errorf("only %d commits", commits)
	}
	slices.Sort(gaps)
	t.Logf("%d leads, %d commits, %d times the batch on its way stood; from a kill to the next commit %v", len(numbers), commits, undecided, gaps)
}
