package invite

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"

	"kith/internal/job"
	"kith/meta/trust"
)

// An ID names an invitation. It is derived from the secret and tells nothing of it.
type ID [8]byte

// String returns the id as text, 13 letters; it may be logged.
func (id ID) String() string {
	return base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(id[:])
}

// ParseID reads an id as text.
func ParseID(text string) (ID, error) {
	raw, err := base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(text))
	if err != nil || len(raw) != len(ID{}) {
		return ID{}, fmt.Errorf("invitation %.32q: an id has 13 letters and digits; kith site invite printed it: %w", text, ErrNoOffer)
	}
	return ID(raw), nil
}

// Bytes returns the verifier for keeping; [ParseVerifier] reads it back.
func (v Verifier) Bytes() []byte { return append(append([]byte(nil), v.Joiner[:]...), v.Inviter[:]...) }

// ParseVerifier reads what [Verifier.Bytes] returned; of anything else it returns the
// zero Verifier, which no proof fits.
func ParseVerifier(raw []byte) (v Verifier) {
	if len(raw) == len(v.Joiner)+len(v.Inviter) {
		copy(v.Inviter[:], raw[copy(v.Joiner[:], raw):])
	}
	return v
}

// ID returns the name of the invitation.
func (i Invitation) ID() ID { return ID(derive(i.Secret[:], "kith invitation 1: id")) }

// A Verifier is what the inviter keeps of the secret. Who steals it can check proofs but
// not make the joiner's: that takes what Joiner is the hash of. It can make the
// inviter's, which is worth nothing without the key of the inviter's CA.
type Verifier struct {
	Joiner, Inviter [sha256.Size]byte
}

// Verifier returns what the inviter keeps.
func (i Invitation) Verifier() Verifier {
	return Verifier{Joiner: sha256.Sum256(i.joinerKey()), Inviter: [sha256.Size]byte(derive(i.Secret[:], "kith invitation 1: inviter"))}
}

func (i Invitation) joinerKey() []byte { return derive(i.Secret[:], "kith invitation 1: joiner") }

// derive returns 32 bytes for a purpose from a key of 256 random bits.
func derive(key []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// A binding is what a proof holds for: one connection between two sites.
type binding struct {
	exporter            []byte // keying material of the connection
	inviterCA, joinerCA *x509.Certificate
	inviter, joiner     job.SiteID
	invitation          ID
}

// sum is the HMAC by which a role proves a key for the binding. Each part has its
// length before it, so that no two bindings read alike.
func (b binding) sum(key []byte, role string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range [][]byte{
		[]byte("kith join 1"), []byte(role), b.exporter, b.inviterCA.RawSubjectPublicKeyInfo, b.joinerCA.RawSubjectPublicKeyInfo,
		[]byte(b.inviter), []byte(b.joiner), b.invitation[:],
	} {
		mac.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// joinerProof is the joiner's key, hidden by a sum that the inviter can make: as in
// SCRAM (RFC 5802 section 3), without the password's salt and rounds.
func (i Invitation) joinerProof(b binding) []byte {
	key := i.joinerKey()
	stored := sha256.Sum256(key)
	proof := make([]byte, sha256.Size)
	subtle.XORBytes(proof, key, b.sum(stored[:], "joiner"))
	return proof
}

// checkJoiner reports whether proof is one of who has the secret. One of another length
// fits no key.
func (v Verifier) checkJoiner(b binding, proof []byte) bool {
	key := make([]byte, sha256.Size)
	subtle.XORBytes(key, proof, b.sum(v.Joiner[:], "joiner"))
	sum := sha256.Sum256(key)
	return hmac.Equal(sum[:], v.Joiner[:])
}

func (v Verifier) inviterProof(b binding) []byte { return b.sum(v.Inviter[:], "inviter") }

func (v Verifier) checkInviter(b binding, proof []byte) bool {
	return hmac.Equal(proof, v.inviterProof(b))
}

// exporter returns what only the two ends of a connection know (RFC 5705, RFC 8446
// section 7.5), after it has made sure that it is of this protocol and not resumed.
func exporter(s tls.ConnectionState) ([]byte, error) {
	if s.Version != tls.VersionTLS13 || s.NegotiatedProtocol != trust.ALPNJoin || s.DidResume {
		return nil, fmt.Errorf("the connection is %s with %q, resumed %v; want TLS 1.3 with %s, not resumed", tls.VersionName(s.Version), s.NegotiatedProtocol, s.DidResume, trust.ALPNJoin)
	}
	return s.ExportKeyingMaterial("EXPORTER-kith-join", nil, 32)
}
