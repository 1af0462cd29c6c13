package flood

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"kith/meta/trust"
	kithv1 "kith/proto/gen/kith/v1"
)

// Kinds returns all kinds of floods. Their caps are the defaults of rates.* of kithd.
func Kinds() []Kind {
	return []Kind{
		{"silent connections", 0, (*Flood).silent},
		{"handshakes", 0, (*Flood).handshakes},
		{"resets", 0, func(f *Flood) { f.raw(trust.ALPNUsers, inWrite, resets) }},
		{"resets of a peer", 0, func(f *Flood) { f.raw(trust.ALPNPeer, inWrite, resets) }},
		{"pings", 0, func(f *Flood) { f.raw(trust.ALPNUsers, inWrite, pings) }},
		{"calls without a token", 0, func(f *Flood) { f.raw(trust.ALPNUsers, inWrite, calls) }},
		{"settings", 0, func(f *Flood) { f.raw(trust.ALPNUsers, inWrite, settings) }},
		{"windows", 0, func(f *Flood) { f.raw(trust.ALPNUsers, inWrite, windows) }},
		{"priorities", 0, func(f *Flood) { f.raw(trust.ALPNUsers, inWrite, priorities) }},
		{"continuations", 0, func(f *Flood) { f.raw(trust.ALPNUsers, inWrite, continuations) }},
		{"empty data", 0, func(f *Flood) { f.raw(trust.ALPNPeer, inWrite, emptyData) }},
		{"bytes one at a time", 0, func(f *Flood) { f.raw(trust.ALPNPeer, 1, pieces) }},
		{"header lists", 0, func(f *Flood) { f.raw(trust.ALPNUsers, inWrite, headerLists) }},
		{"half requests", 0, func(f *Flood) { f.raw(trust.ALPNPeer, inWrite, halfRequests) }},
		{"streams that come and go", 0, (*Flood).reconnecting},
		{"queries", 1000, func(f *Flood) { f.frames(f.query) }},
		{"place and withdraw", 10_000, func(f *Flood) { f.frames(f.placeAndWithdraw) }},
		{"digest requests", 50, func(f *Flood) { f.frames(f.digestRequest) }},
		{"strays", 50, func(f *Flood) { f.frames(f.stray) }},
		{"loads", 50, func(f *Flood) { f.frames(f.load) }},
		{"file requests", 2000, func(f *Flood) { f.frames(f.fileRequest) }},
		{"messages it may not say", 10_000, func(f *Flood) { f.frames(f.forbidden) }},
		{"pieces that nobody asked for", 0, func(f *Flood) { f.filled(1, f.unasked) }},
		{"packets of gossip", 0, (*Flood).gossip},
		{"data without a call", 0, func(f *Flood) { f.raw(trust.ALPNUsers, inWrite, uncalled) }},
		{"frames of nothing", 0, func(f *Flood) { f.filled(1, f.nothing) }},
	}
}

// inFrame is how many messages a frame of a flood has.
const inFrame = 256

func (*Flood) query(n uint64, _ *kithv1.Hello) *kithv1.PeerMessage {
	return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_StartQuery{StartQuery: &kithv1.StartQuery{
		Query: n, Request: &kithv1.CopyRequest{Processors: 1, WalltimeNs: 1e12},
	}}}
}

func (f *Flood) placeAndWithdraw(n uint64, _ *kithv1.Hello) *kithv1.PeerMessage {
	own := &kithv1.AttemptName{Job: &kithv1.JobName{Origin: string(f.site()), Generation: 1, Seq: n/2 + 1}, Number: 1}
	return About(own)[[]string{"place-copy", "withdraw"}[n%2]]
}

func (*Flood) digestRequest(uint64, *kithv1.Hello) *kithv1.PeerMessage {
	return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_DigestRequest{DigestRequest: &kithv1.DigestRequest{}}}
}

// theirs is an attempt of a job of the target that it does not have here.
func theirs(n uint64, to *kithv1.Hello) *kithv1.AttemptName {
	return &kithv1.AttemptName{Job: &kithv1.JobName{Origin: to.GetSiteId(), Generation: to.GetGeneration(), Seq: n}, Number: 1}
}

func (*Flood) stray(n uint64, to *kithv1.Hello) *kithv1.PeerMessage {
	return About(theirs(n, to))["copy-digest"]
}

func (f *Flood) load(n uint64, _ *kithv1.Hello) *kithv1.PeerMessage {
	return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_LoadDigest{LoadDigest: &kithv1.LoadDigest{
		SiteId: string(f.site()), Incarnation: f.incarnation, Sequence: n, Processors: 1, Speed: 1, TimeNs: time.Now().UnixNano(),
	}}}
}

func (*Flood) fileRequest(n uint64, to *kithv1.Hello) *kithv1.PeerMessage {
	return &kithv1.PeerMessage{Message: &kithv1.PeerMessage_FileRequest{FileRequest: &kithv1.FileRequest{
		Request: n, Limit: 1 << 18, Target: &kithv1.FileRequest_Chunk{Chunk: make([]byte, 32)}, Attempt: theirs(n, to),
	}}}
}

func (*Flood) forbidden(n uint64, _ *kithv1.Hello) *kithv1.PeerMessage {
	third := &kithv1.AttemptName{Job: &kithv1.JobName{Origin: "third", Generation: 1, Seq: n}, Number: 1}
	return About(third)[OriginsOnly[n%uint64(len(OriginsOnly))]]
}

// frames sends frames of many messages.
func (f *Flood) frames(message func(n uint64, to *kithv1.Hello) *kithv1.PeerMessage) {
	f.filled(inFrame, func(n uint64, to *kithv1.Hello) *kithv1.Frame {
		frame := &kithv1.Frame{}
		for i := range uint64(inFrame) {
			frame.Messages = append(frame.Messages, message(n*inFrame+i+1, to))
		}
		return frame
	})
}

// large is how much a frame has that is large, the most that one of an honest site may have.
const large = 256 << 10

// unasked is a piece of a file for which the target did not ask.
func (*Flood) unasked(n uint64, _ *kithv1.Hello) *kithv1.Frame {
	return &kithv1.Frame{Messages: []*kithv1.PeerMessage{{Message: &kithv1.PeerMessage_FileReply{FileReply: &kithv1.FileReply{Request: n, Data: make([]byte, large)}}}}}
}

// nothing is a frame of bytes that mean nothing.
func (*Flood) nothing(uint64, *kithv1.Hello) *kithv1.Frame {
	frame := &kithv1.Frame{}
	frame.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 100, protowire.BytesType), make([]byte, large)))
	return frame
}

// filled sends frames, of which each counts as so many, and reads all answers. When it is
// thrown out it comes back.
func (f *Flood) filled(each int, fill func(n uint64, to *kithv1.Hello) *kithv1.Frame) {
	var n uint64
	f.goes(func() {
		conn, err := Dial(f.target)
		if err != nil {
			return
		}
		defer conn.Close()
		s, to, err := Join(f.ctx, conn, f.target, f.incarnation)
		if err != nil {
			return
		}
		f.wg.Go(func() {
			for {
				if _, err := s.Recv(); err != nil {
					return
				}
			}
		})
		for f.passed(each) {
			if s.Send(&kithv1.ConnectRequest{Frame: fill(n, to)}) != nil {
				return
			}
			n++
			f.sent.Add(int64(each))
		}
	})
}

// reconnecting says hello on one stream after another.
func (f *Flood) reconnecting() {
	f.goes(func() {
		conn, err := Dial(f.target)
		if err != nil {
			return
		}
		defer conn.Close()
		for f.passed(1) && f.ctx.Err() == nil {
			if s, _, err := Join(f.ctx, conn, f.target, f.incarnation); err == nil {
				s.CloseSend() //nolint:errcheck // it goes
			}
			f.sent.Add(1)
		}
	})
}

// silent opens connections that say nothing, each anew when the site has closed it. What the
// site does not answer is asked for again at once, not after a second as by others.
func (f *Flood) silent() {
	for range 64 {
		f.goes(func() {
			if !f.passed(1) {
				return
			}
			n := f.sent.Add(1)
			c, err := f.dialWithin(5 * time.Millisecond)
			if err != nil {
				return
			}
			if n%100 == 0 {
				time.Sleep(10 * time.Millisecond) // ports are not endless
			}
			ended := context.AfterFunc(f.ctx, func() { c.Close() }) //nolint:errcheck // it ends
			f.wg.Go(func() {
				c.Read(make([]byte, 1)) //nolint:errcheck // the site closes it
				c.Close()               //nolint:errcheck // a flood's
				ended()
			})
		})
	}
}

// handshakes proves who it is, and goes again.
func (f *Flood) handshakes() {
	for range 4 {
		f.goes(func() {
			if !f.passed(1) {
				return
			}
			raw, err := f.dial()
			if err != nil {
				return
			}
			tls.Client(raw, f.shows(trust.ALPNPeer)).HandshakeContext(f.ctx) //nolint:errcheck // it goes anyway
			raw.Close()                                                      //nolint:errcheck // a flood's
			f.sent.Add(1)
		})
	}
}

// shows is how a flood proves who it is; it does not look at whom it floods.
func (f *Flood) shows(alpn string) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{alpn}, //nolint:gosec // it tells nothing that is secret
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return f.target.As.Keys.Leaf(), nil },
	}
}

// gossip sends packets over a lane that say nothing. When it is thrown out it comes back.
func (f *Flood) gossip() {
	packet := append([]byte{1, 0, 0, 0, 0, 0, 100}, make([]byte, 100)...) // see cluster/gossip
	f.goes(func() {
		raw, err := f.dial()
		if err != nil {
			return
		}
		defer raw.Close()                                        //nolint:errcheck // a flood's
		defer context.AfterFunc(f.ctx, func() { raw.Close() })() //nolint:errcheck // a flood's
		conn := tls.Client(raw, f.shows(trust.ALPNGossip))
		if conn.HandshakeContext(f.ctx) != nil {
			return
		}
		f.wg.Go(func() {
			io.Copy(io.Discard, conn) //nolint:errcheck // until it ends
			raw.Close()               //nolint:errcheck // a flood's
		})
		for f.passed(inFrame) {
			if _, err := conn.Write(bytes.Repeat(packet, inFrame)); err != nil {
				return
			}
			f.sent.Add(inFrame)
		}
	})
}
