package gossip

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"kith/cluster"
	"kith/cluster/wire"
	"kith/internal/job"
	kithv1 "kith/proto/gen/kith/v1"
)

// Signer signs for this site.
type Signer interface {
	// Sign returns a signature over msg, and the certificates that show that the key
	// is this site's: its own first, DER. The caller does not change them.
	Sign(msg []byte) (signature []byte, chain [][]byte)
}

// Verifier knows which keys are whose. Its answers may change with time: a certificate
// expires, a site is revoked.
type Verifier interface {
	// CheckKey returns nil if chain shows, now, a key of the site.
	CheckKey(site job.SiteID, chain [][]byte) error
	// Verify returns nil if CheckKey does, and signature is one of that key over msg.
	Verify(site job.SiteID, chain [][]byte, msg, signature []byte) error
	// VerifyHead returns nil if CheckKey does for the chain of a head of the site's audit
	// log, and its key has signed it.
	VerifyHead(site job.SiteID, h *cluster.AuditHead) error
}

// Bounds of what is passed on, in bytes.
const (
	// maxDigestBytes is the longest encoded load digest.
	maxDigestBytes = 1200
	// maxSignature is the longest signature.
	maxSignature = 128
	keyIDBytes   = 16
	// maxChain is how many certificates a chain has at most, and how long all are.
	maxChain, maxChainBytes = 4, 8 << 10
	// maxNote is what fits into a packet beside the headers.
	maxNote = maxPacket - 16
)

// digestPrefix heads what is signed, so that no signature made for something else is
// one of a digest.
const digestPrefix = "kith digest 1\x00"

func signedText(digest []byte) []byte { return append([]byte(digestPrefix), digest...) }

// keyID names a chain; nil for an empty one.
func keyID(chain [][]byte) []byte {
	if len(chain) == 0 {
		return nil
	}
	sum := sha256.Sum256(chain[0])
	return sum[:keyIDBytes]
}

// errDigest is wrapped by the error about a note that no site makes.
var errDigest = errors.New("gossip note refused")

func refusedNote(field string, value any, must string) error {
	return fmt.Errorf("%w: %s is %v, must be %s", errDigest, field, value, must)
}

// seal makes the note of a digest of this site. It leaves out a head that another key has
// signed, as others could not check it: this site has a new certificate.
func seal(s Signer, d *cluster.Digest) (note *kithv1.GossipNote, chain [][]byte, err error) {
	note, chain, err = sealWhole(s, d)
	if h := d.Head; err == nil && h != nil && !bytes.Equal(keyID(h.Chain), keyID(chain)) {
		without := *d
		without.Head = nil
		return sealWhole(s, &without)
	}
	return note, chain, err
}

func sealWhole(s Signer, d *cluster.Digest) (note *kithv1.GossipNote, chain [][]byte, err error) {
	data, err := proto.Marshal(wire.DigestMessage(d))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxDigestBytes {
		return nil, nil, refusedNote("digest", fmt.Sprint(len(data), " bytes"), fmt.Sprint("at most ", maxDigestBytes))
	}
	signature, chain := s.Sign(signedText(data))
	return &kithv1.GossipNote{Note: &kithv1.GossipNote_Digest{Digest: &kithv1.SignedDigest{
		SiteId: string(d.Site), Digest: data, KeyId: keyID(chain), Signature: signature,
	}}}, chain, nil
}

// unsealed is a signed digest as it came, with what it says. Nothing of it is proved.
type unsealed struct {
	signed *kithv1.SignedDigest
	digest cluster.Digest
}

// unseal reads a signed digest and checks its bounds.
func unseal(m *kithv1.SignedDigest) (u unsealed, err error) {
	switch {
	case len(m.GetDigest()) > maxDigestBytes:
		return u, refusedNote("digest", fmt.Sprint(len(m.GetDigest()), " bytes"), fmt.Sprint("at most ", maxDigestBytes))
	case len(m.GetSignature()) > maxSignature:
		return u, refusedNote("signature", fmt.Sprint(len(m.GetSignature()), " bytes"), fmt.Sprint("at most ", maxSignature))
	case len(m.GetKeyId()) != 0 && len(m.GetKeyId()) != keyIDBytes:
		return u, refusedNote("key_id", fmt.Sprint(len(m.GetKeyId()), " bytes"), fmt.Sprint(keyIDBytes))
	}
	var load kithv1.LoadDigest
	if err := proto.Unmarshal(m.GetDigest(), &load); err != nil {
		return u, refusedNote("digest", "not one", "a LoadDigest")
	}
	if broken := wire.Check(&load); len(broken) > 0 {
		return u, fmt.Errorf("%w: %w", errDigest, broken[0])
	}
	u = unsealed{signed: m}
	if u.digest, err = wire.Digest(&load); err != nil {
		return u, fmt.Errorf("%w: %w", errDigest, err)
	}
	if string(u.digest.Site) != m.GetSiteId() {
		return u, fmt.Errorf("%w: %w", refusedNote("site_id", fmt.Sprintf("%.32q", m.GetSiteId()), "that of the digest, "+string(u.digest.Site)), errOther)
	}
	return u, nil
}

// key is a chain that was shown to be a site's when it came.
type key struct {
	id    []byte
	chain [][]byte
}

func (k *key) note(site job.SiteID) *kithv1.GossipNote {
	return &kithv1.GossipNote{Note: &kithv1.GossipNote_Key{Key: &kithv1.SigningKey{SiteId: string(site), Chain: k.chain}}}
}

// readKey checks the bounds of a key.
func readKey(m *kithv1.SigningKey) (job.SiteID, key, error) {
	site, err := job.ParseSiteID(m.GetSiteId())
	if err != nil {
		return "", key{}, fmt.Errorf("%w: %w", errDigest, err)
	}
	total := 0
	for _, c := range m.GetChain() {
		total += len(c)
	}
	if n := len(m.GetChain()); n == 0 || n > maxChain || total > maxChainBytes {
		return "", key{}, refusedNote("chain", fmt.Sprintf("%d certificates, %d bytes", n, total), fmt.Sprintf("1 to %d, at most %d bytes", maxChain, maxChainBytes))
	}
	return site, key{id: keyID(m.GetChain()), chain: m.GetChain()}, nil
}

func (k *key) named(id []byte) bool { return bytes.Equal(k.id, id) }

func findKey(keys []key, id []byte) *key {
	if i := slices.IndexFunc(keys, func(k key) bool { return k.named(id) }); i >= 0 {
		return &keys[i]
	}
	return nil
}
