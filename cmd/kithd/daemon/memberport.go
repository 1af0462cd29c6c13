package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"kith/cmd/kithd/members"
	"kith/internal/identity"
	"kith/internal/pause"
	"kith/meta/trust"
	"kith/store/raftstore"
)

const (
	// leaderEvery is how often a member looks whether another one leads.
	leaderEvery = 100 * time.Millisecond
	// leaderWait is how long a client waits for a leader until it is told that there is none: an
	// election takes less.
	leaderWait = 3 * time.Second
	// dialWait is how long a connection to another member may take.
	dialWait = 3 * time.Second
)

// acceptPort takes what comes in at the port: other members' here, and clients to the leader.
func (m *Member) acceptPort() {
	m.accept(m.listener, func(conn net.Conn) {
		ctx, cancel := context.WithTimeout(m.ctx, tlsWait)
		defer cancel()
		offered, again, err := members.Hello(ctx, conn)
		switch {
		case err != nil:
			conn.Close() //nolint:errcheck // it was not let in
		case slices.Contains(offered, trust.ALPNRaft), slices.Contains(offered, trust.ALPNMember):
			m.meet(ctx, again)
		default:
			m.deliver(again, members.Call{Purpose: members.ForPort, From: conn.RemoteAddr().String()}, slices.Contains(offered, trust.ALPNUsers))
		}
	})
}

// acceptSocket takes what comes in at the unix socket.
func (m *Member) acceptSocket() {
	m.accept(m.socket, func(conn net.Conn) {
		call := members.Call{Purpose: members.ForSocket}
		local, is := conn.(*net.UnixConn)
		if !is {
			conn.Close() //nolint:errcheck // nobody knows who it is
			return
		}
		who, err := credentialOf(local)
		if err != nil {
			conn.Close() //nolint:errcheck // it was not let in
			return
		}
		if who, is := who.(peerCredential); is {
			call.UID, call.From = who.uid, accountName(who.uid)
		}
		m.deliver(conn, call, true)
	})
}

// accept has take called with each connection, on a goroutine of its own.
func (m *Member) accept(l net.Listener, take func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many files, say
			if !pause.For(m.ctx, 20*time.Millisecond) {
				return
			}
			continue
		}
		m.wg.Go(func() { take(conn) })
	}
}

// meet shakes hands with what says it is a member, and hands it to what serves it.
func (m *Member) meet(ctx context.Context, conn net.Conn) {
	secured := tls.Server(conn, m.name.ServerTLS())
	if err := secured.HandshakeContext(ctx); err != nil {
		m.border.tellCaller(hostOf(conn.RemoteAddr()), err)
		conn.Close() //nolint:errcheck // it was not let in
		return
	}
	if secured.ConnectionState().NegotiatedProtocol == trust.ALPNRaft {
		m.raftPort.put(secured)
		return
	}
	m.answer(secured)
}

// answer serves a call of another member.
func (m *Member) answer(conn *tls.Conn) {
	call, err := members.ReadCall(conn)
	if err == nil && call.Cluster != m.cluster() {
		err = errors.New("it is of another cluster")
		members.Answer(conn, err) //nolint:errcheck // it is refused either way
	}
	if err != nil {
		m.border.tellCaller(hostOf(conn.RemoteAddr()), err)
		conn.Close() //nolint:errcheck // it was not let in
		return
	}
	m.mu.Lock()
	in := m.doors
	m.mu.Unlock()
	switch {
	case call.Purpose == members.ForChunks:
		if members.Answer(conn, nil) == nil {
			members.Serve(m.ctx, conn, m.withChunks)
		}
		conn.Close() //nolint:errcheck // nobody speaks on it any more
	case call.Purpose == members.ForWork:
		if m.worker == nil {
			members.Answer(conn, fmt.Errorf("member %s does not run the jobs of the site: members.executor is %q there", m.cfg.Members.Self, m.cfg.Members.Executor)) //nolint:errcheck // it is refused either way
			conn.Close()                                                                                                                                              //nolint:errcheck // likewise
		} else if members.Answer(conn, nil) == nil {
			m.workPort.put(conn)
		}
	case in == nil || call.Purpose == members.ForSocket && m.socket == nil:
		members.Answer(conn, members.ErrNotLeading) //nolint:errcheck // its client is refused either way
		conn.Close()                                //nolint:errcheck // likewise
	case members.Answer(conn, nil) != nil:
		conn.Close() //nolint:errcheck // it has gone
	case call.Purpose == members.ForPort:
		in.port.put(&carriedPort{conn, addressOf(call.From)})
	case call.Purpose == members.ForSocket:
		in.socket.put(&carriedSocket{conn, peerCredential{secured, call.UID, identity.MakeActor(call.From)}})
	default:
		conn.Close() //nolint:errcheck // nothing serves it
	}
}

// withChunks has f called with the store for chunks of others.
func (m *Member) withChunks(f func(members.Store) error) error {
	m.mu.Lock()
	chunks := m.chunks
	m.mu.Unlock()
	if chunks == nil {
		return members.ErrAway
	}
	return f(chunks)
}

// deliver brings a client to the leader. For a while it waits for one, as when another member is
// just being elected, or this one has just started; then it tells the client, if that is a user,
// that there is none.
func (m *Member) deliver(conn net.Conn, call members.Call, user bool) {
	for end := time.Now().Add(leaderWait); ; {
		m.mu.Lock()
		in := m.doors
		m.mu.Unlock()
		leader := m.raft.Leader()
		switch {
		case in != nil && call.Purpose == members.ForSocket:
			in.socket.put(conn)
			return
		case in != nil:
			in.port.put(conn)
			return
		case leader.Name != "" && leader.Name != m.cfg.Members.Self && m.carry(conn, leader, call):
			return
		}
		if time.Now().After(end) || !pause.For(m.ctx, leaderEvery/2) {
			break
		}
	}
	if user {
		m.refuses.take(m.ctx, conn, call.Purpose == members.ForPort)
		return
	}
	conn.Close() //nolint:errcheck // a site; it dials again, here or elsewhere
}

// carry carries a client's bytes to the leader and back until either ends. It returns false,
// and the connection is as it was, if that cannot be reached or does not lead.
func (m *Member) carry(conn net.Conn, leader raftstore.Peer, call members.Call) bool {
	ctx, cancel := context.WithTimeout(m.ctx, dialWait)
	defer cancel()
	defer m.whileLeads(leader, cancel)()
	to, err := m.begin(ctx, leader, call)
	if err != nil {
		m.log.Debug("client not brought to the leader", "leader", leader.Name, "error", err.Error())
		return false
	}
	m.mu.Lock()
	m.tunnels[conn] = leader
	m.mu.Unlock()
	members.Join(conn, to)
	m.mu.Lock()
	delete(m.tunnels, conn)
	m.mu.Unlock()
	return true
}

// whileLeads has cancel called as soon as another member leads: one that is paused takes connections, and
// answers nothing. The caller calls done when it waits no longer.
func (m *Member) whileLeads(leader raftstore.Peer, cancel context.CancelFunc) (done func()) {
	key := &cancel
	m.mu.Lock()
	m.dials[key] = leader
	m.mu.Unlock()
	return func() {
		m.mu.Lock()
		delete(m.dials, key)
		m.mu.Unlock()
	}
}

// begin begins a call with another member.
func (m *Member) begin(ctx context.Context, to raftstore.Peer, call members.Call) (net.Conn, error) {
	conn, err := m.dial(ctx, to.Address, trust.ALPNMember)
	if err != nil {
		return nil, err
	}
	call.Cluster = m.cluster()
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // it ends the call
	err = members.Begin(conn, call)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		conn.Close() //nolint:errcheck // it was refused, or is too late
		return nil, err
	}
	return conn, nil
}

func (m *Member) cluster() [16]byte { return raftConfig(&m.cfg, m.log).Cluster }

// dial connects to another member, by one of the protocols of members.
func (m *Member) dial(ctx context.Context, address, alpn string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, m.name.ClientTLS(alpn))
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close() //nolint:errcheck // there is an error already
		return nil, err
	}
	return conn, nil
}

// dialChunks begins a call for chunks with a member.
func (m *Member) dialChunks(ctx context.Context, name string) (net.Conn, error) {
	for _, s := range m.raft.Members() {
		if s.Name == name {
			return m.begin(ctx, s.Peer, members.Call{Purpose: members.ForChunks})
		}
	}
	return nil, errors.New("it is no member any more")
}

// watchLeader ends what leads to a member that does not lead any more, so that clients come
// again: a machine that is gone closes nothing.
func (m *Member) watchLeader() {
	var last raftstore.Peer
	for pause.For(m.ctx, leaderEvery) {
		leader := m.raft.Leader()
		if leader.Name != "" {
			m.reading.forget()
		}
		if leader == last || leader.Name == "" {
			continue
		}
		if last.Name != "" || leader.Name != m.cfg.Members.Self {
			m.log.Info("a member leads the site", "leader", leader.Name, "leader_address", leader.Address)
		}
		last = leader
		m.dropTunnels(leader)
	}
}

// dropTunnels closes the connections that are carried to any member but one, or about to be.
func (m *Member) dropTunnels(but raftstore.Peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for conn, to := range m.tunnels {
		if to != but {
			conn.Close() //nolint:errcheck // its client comes again
		}
	}
	for cancel, to := range m.dials {
		if to != but {
			(*cancel)()
		}
	}
}

// carriedPort is a connection that came in at the port of another member.
type carriedPort struct {
	net.Conn
	from net.Addr
}

// RemoteAddr implements net.Conn.
func (c *carriedPort) RemoteAddr() net.Addr { return c.from }

// carriedSocket is one that came in at the unix socket of another member's machine, which says
// of whom.
type carriedSocket struct {
	net.Conn
	who peerCredential
}

// RemoteAddr implements net.Conn.
func (c *carriedSocket) RemoteAddr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// carriedAddress is where another member says that a client is.
type carriedAddress string

// Network implements net.Addr.
func (carriedAddress) Network() string { return "tcp" }

// String implements net.Addr.
func (a carriedAddress) String() string { return string(a) }

func addressOf(text string) net.Addr { return carriedAddress(text) }
