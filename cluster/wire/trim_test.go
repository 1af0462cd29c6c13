package wire

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	kithv1 "kith/proto/gen/kith/v1"
)

// bytesField is a field of bytes as it is encoded.
func bytesField(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

// What is decoded of a request of 3 MiB that is nothing but inputs took 150 MiB.
func TestListsAreTrimmedBeforeTheyAreDecoded(t *testing.T) {
	kind := (&kithv1.SubmitJobRequest{}).ProtoReflect().Descriptor()
	const job, inputs = 2, 13
	input := bytesField(inputs, nil)
	head := (&kithv1.Job{Name: "name", Command: []string{"true"}})
	name, err := proto.Marshal(head)
	if err != nil {
		t.Fatal(err)
	}
	for what, request := range map[string][]byte{
		"at once": bytesField(job, append(append(bytes.Clone(name), bytes.Repeat(input, 1_000_000)...), name...)),
		"in parts of one job": append(append(bytesField(job, name),
			bytes.Repeat(bytesField(job, bytes.Repeat(input, 500)), 2000)...), bytesField(job, name)...),
	} {
		before := bytes.Clone(request)
		short, left := Trim(kind, request)
		if !left || !bytes.Equal(request, before) {
			t.Errorf("%s: left something out: %v; the request is as it was: %v", what, left, bytes.Equal(request, before))
		}
		var m kithv1.SubmitJobRequest
		if err := proto.Unmarshal(short, &m); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := len(m.GetJob().GetInputs()); n != Files+Spare || m.GetJob().GetName() != "name" || len(m.GetJob().GetCommand()) != 2 {
			t.Errorf("%s: %d inputs are left, name %q, %d words", what, n, m.GetJob().GetName(), len(m.GetJob().GetCommand()))
		}
		if b := Check(&m); len(b) == 0 || !strings.Contains(b[0].Error(), "job.inputs") {
			t.Errorf("%s: %v", what, b)
		}
	}
}

func TestWhatIsWithinItsBoundsIsNotTrimmed(t *testing.T) {
	inputs := make([]*kithv1.InputFile, Files+Spare)
	for i := range inputs {
		inputs[i] = &kithv1.InputFile{Path: "x"}
	}
	request := &kithv1.SubmitJobRequest{Job: &kithv1.Job{Inputs: inputs, Environment: map[string]string{"A": "b"}}}
	b, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	kind := request.ProtoReflect().Descriptor()
	for _, cut := range []int{len(b), len(b) - 1, 1, 0} { // torn ones are the decoder's
		if short, left := Trim(kind, b[:cut]); left || !bytes.Equal(short, b[:cut]) {
			t.Errorf("%d bytes of %d: changed to %d", cut, len(b), len(short))
		}
	}
}

// A frame of 256 KiB between sites, as large as they get.
func BenchmarkTrim(b *testing.B) {
	var f kithv1.ConnectRequest
	f.Frame = &kithv1.Frame{}
	for range 512 {
		a := &kithv1.AttemptName{Job: &kithv1.JobName{Origin: "alpha", Generation: 7, Seq: 1 << 20}, Number: 1}
		f.Frame.Messages = append(f.Frame.Messages, &kithv1.PeerMessage{Message: &kithv1.PeerMessage_PlaceCopy{PlaceCopy: &kithv1.PlaceCopy{
			Attempt: a, Request: &kithv1.CopyRequest{Name: strings.Repeat("n", 200), User: strings.Repeat("u", 200), Processors: 1, WalltimeNs: 1 << 40},
		}}})
	}
	frame, err := proto.Marshal(&f)
	if err != nil {
		b.Fatal(err)
	}
	kind := f.ProtoReflect().Descriptor()
	b.SetBytes(int64(len(frame)))
	b.Run("trim", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Trim(kind, frame)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m kithv1.ConnectRequest
			if err := proto.Unmarshal(frame, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
