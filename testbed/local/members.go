package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"kith/cmd/kithd/config"
	"kith/internal/pause"
	kithv1 "kith/proto/gen/kith/v1"
)

// Members are the machines of one site that keep its facts together, each a kithd of its own, and
// the machine that runs its jobs, which keeps no facts.
type Members struct {
	// Nodes are those that were found or added, in that order. Each takes every call.
	Nodes []*Node
	// Executor runs the jobs; nil if the site has no processors.
	Executor *Node

	f *Federation
}

// memberNames are the names of the machines in the order in which they are added; the last one is that
// of an executor.
var memberNames = []string{"one", "two", "three", "four"}

// StartMembers starts a site of three machines beside a federation with keys, and has it join all sites
// there, by the commands of docs/operations.md. With processors in its configuration, which tune
// adjusts for all machines, a fourth one has them. The caller closes it before the federation.
func (f *Federation) StartMembers(ctx context.Context, site string, tune func(*config.Config)) (*Members, error) {
	m := &Members{f: f}
	if err := m.start(ctx, site, tune); err != nil {
		return nil, errors.Join(fmt.Errorf("site %s: %w", site, err), m.Close())
	}
	f.members = append(f.members, m)
	return m, nil
}

func (m *Members) start(ctx context.Context, site string, tune func(*config.Config)) error {
	all, err := m.prepare(ctx, site, tune)
	if err != nil {
		return err
	}
	one := all[0]
	if err := one.makeKeys(ctx); err != nil {
		return err
	}
	if err := one.found(ctx); err != nil {
		return err
	}
	for i, n := range all {
		if i > 0 {
			if err := n.takeKeys(one); err != nil {
				return err
			}
		}
		if err := n.Start(ctx); err != nil {
			return err
		}
		if n == m.Executor {
			break
		}
		m.Nodes = append(m.Nodes, n)
		if i > 0 {
			if err := m.Add(ctx, n); err != nil {
				return err
			}
		} else if _, err := m.Leader(ctx); err != nil {
			return err
		}
	}
	return inParallel(m.f.nodes, func(other *Node) error { return pair{inviter: other, joiner: one}.join(ctx) })
}

// prepare makes the configurations of the machines.
func (m *Members) prepare(ctx context.Context, site string, tune func(*config.Config)) ([]*Node, error) {
	c := config.Default()
	c.Site, c.Listen.AllowOwnUID, c.Executor.Pin = site, true, false
	if tune != nil {
		tune(&c)
	}
	names := memberNames[:3]
	if c.Scheduler.Processors > 0 {
		names = memberNames
		address, err := LastingAddress()
		if err != nil {
			return nil, err
		}
		c.Members.Executor, c.Members.ExecutorAddress = names[3], address
	}
	p := program{path: m.f.cfg.Program, args: m.f.cfg.Args}
	id, err := p.run(ctx, "members", "id")
	if err != nil {
		return nil, fmt.Errorf("kithd members id: %w: %s", err, bytes.TrimSpace(id))
	}
	c.Members.Cluster = strings.TrimSpace(string(id))
	var all []*Node
	for i, name := range names {
		own := c
		own.Data, own.Members.Self = filepath.Join(m.f.cfg.Dir, site+"-"+name), name
		if own.Listen.Address = c.Members.ExecutorAddress; i < 3 {
			if own.Listen.Address, err = LastingAddress(); err != nil {
				return nil, err
			}
		}
		if err := own.Validate(); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(own.Data, 0o700); err != nil {
			return nil, err
		}
		n := &Node{Name: site, Config: own, f: m.f, dir: own.Data, program: p}
		all = append(all, n)
		if i == 3 {
			m.Executor = n
		}
	}
	return all, nil
}

// found makes the machine the first one of its site.
func (n *Node) found(ctx context.Context) error {
	path := filepath.Join(n.dir, "kithd.toml")
	if err := writeConfig(path, n.Config, nil); err != nil {
		return err
	}
	if text, err := n.program.run(ctx, "members", "found", "--config", path); err != nil {
		return fmt.Errorf("kithd members found: %w: %s", err, bytes.TrimSpace(text))
	}
	return nil
}

// keptByAll are what all machines of a site have alike in their data folders.
var keptByAll = []string{"keys", "history.salt"}

// takeKeys copies to the machine what all of its site have, as their operator does.
func (n *Node) takeKeys(from *Node) error {
	for _, name := range keptByAll {
		path := filepath.Join(from.dir, name)
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		to := filepath.Join(n.dir, name)
		if info.IsDir() {
			err = os.CopyFS(to, os.DirFS(path))
		} else {
			var b []byte
			if b, err = os.ReadFile(path); err == nil {
				err = os.WriteFile(to, b, 0o600)
			}
		}
		if err == nil {
			err = onlyMine(to)
		}
		if err != nil {
			return fmt.Errorf("copy %s to machine %s: %w", name, n.Config.Members.Self, err)
		}
	}
	return nil
}

// onlyMine takes the rights of others away, which copying may have given.
func onlyMine(path string) error {
	return filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a folder is entered
		}
		return os.Chmod(path, 0o600)
	})
}

// Empty removes all that a machine, which does not run, keeps but for the keys, as if it had a new disk. Start and
// [Members.Add] bring it back, once it was removed.
func (n *Node) Empty() error {
	entries, err := os.ReadDir(n.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(keptByAll, e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(n.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Add has the site take a machine in, which runs; Remove has it take one out. They ask until there is an answer.
func (m *Members) Add(ctx context.Context, n *Node) error {
	return m.askFor(ctx, patienceAdd, patience, "add "+n.Config.Members.Self, func(ctx context.Context, by *Node) error {
		_, err := by.Sites.AddMember(ctx, &kithv1.AddMemberRequest{Name: n.Config.Members.Self, Address: n.Config.Listen.Address})
		return err
	})
}

// Remove is told at [Members.Add].
func (m *Members) Remove(ctx context.Context, n *Node) error {
	return m.ask(ctx, "remove "+n.Config.Members.Self, func(ctx context.Context, by *Node) error {
		_, err := by.Sites.RemoveMember(ctx, &kithv1.RemoveMemberRequest{Name: n.Config.Members.Self})
		return err
	})
}

// patience is how long members are asked in turn, and each for how long; for longer to take a machine
// in, which is sent all facts.
const (
	patience     = time.Minute
	patienceEach = 10 * time.Second
	patienceAdd  = 5 * time.Minute
)

// ask asks one machine after the other until one does it.
func (m *Members) ask(ctx context.Context, what string, call func(ctx context.Context, by *Node) error) error {
	return m.askFor(ctx, patience, patienceEach, what, call)
}

// askFor is ask with the time for all and for each.
func (m *Members) askFor(ctx context.Context, all, each time.Duration, what string, call func(ctx context.Context, by *Node) error) error {
	ctx, cancel := context.WithTimeout(ctx, all)
	defer cancel()
	var err error
	for i := 0; ; i++ {
		by := m.Nodes[i%len(m.Nodes)]
		if by.PID() != 0 {
			one, done := context.WithTimeout(ctx, each)
			err = call(one, by)
			done()
			if err == nil {
				return nil
			}
		}
		if !pause.For(ctx, 50*time.Millisecond) {
			return fmt.Errorf("%s: %w", what, errors.Join(err, ctx.Err()))
		}
	}
}

// Leader returns the machine that leads, once one says who does.
func (m *Members) Leader(ctx context.Context) (leader *Node, err error) {
	err = m.ask(ctx, "ask who leads", func(ctx context.Context, by *Node) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		r, err := by.Sites.ListMembers(ctx, &kithv1.ListMembersRequest{})
		if err != nil {
			return err
		}
		for _, one := range r.GetMembers() {
			for _, n := range m.Nodes {
				if one.GetLeads() && n.Config.Members.Self == one.GetName() {
					leader = n
					return nil
				}
			}
		}
		return errors.New("no machine leads")
	})
	return leader, err
}

// Answers returns when a machine has been told who leads, which it is once it has caught up with the others.
func (m *Members) Answers(ctx context.Context, n *Node) error {
	only := Members{Nodes: []*Node{n}}
	return only.ask(ctx, "ask machine "+n.Config.Members.Self+" who leads", func(ctx context.Context, by *Node) error {
		_, err := by.Sites.ListMembers(ctx, &kithv1.ListMembersRequest{})
		return err
	})
}

// Front is the site as its users have it: each call goes to a machine that runs, in turn. Its configuration is that of
// the machine that runs the jobs, where there is one.
func (m *Members) Front() *Node {
	n := &Node{Name: m.Nodes[0].Name, Config: m.All()[len(m.All())-1].Config, f: m.f}
	n.clients(&turns{m: m})
	return n
}

// turns is a connection to one machine after the other.
type turns struct {
	m    *Members
	next atomic.Uint64
}

// conn returns the connection to the next machine that runs, if any does.
func (t *turns) conn() *grpc.ClientConn {
	nodes := t.m.Nodes
	for range nodes {
		if n := nodes[t.next.Add(1)%uint64(len(nodes))]; n.PID() != 0 {
			return n.conn
		}
	}
	return nodes[0].conn
}

// Invoke implements [grpc.ClientConnInterface].
func (t *turns) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return t.conn().Invoke(ctx, method, args, reply, opts...)
}

// NewStream implements [grpc.ClientConnInterface].
func (t *turns) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return t.conn().NewStream(ctx, desc, method, opts...)
}

// All returns all machines, the executor last.
func (m *Members) All() []*Node {
	if m.Executor == nil {
		return m.Nodes
	}
	return append(slices.Clone(m.Nodes), m.Executor)
}

// Close stops all machines. One that was paused is killed.
func (m *Members) Close() error {
	return inParallel(m.All(), func(n *Node) error {
		n.Stop()
		if n.conn == nil {
			return nil
		}
		err := n.conn.Close()
		n.conn = nil
		return err
	})
}

// LastingAddress returns an address on loopback that is not in use, nor will be
// while its site is down: it is not among those that the kernel gives to
// connections.
func LastingAddress() (string, error) {
	var err error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}
