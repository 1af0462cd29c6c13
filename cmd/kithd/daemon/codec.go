package daemon

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is looked up
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"kith/cluster/wire"
)

// trimFrom is the size from which a message is looked at before it is decoded. A smaller
// one takes less than 256 KiB then, whatever it is made of.
const trimFrom = 4 << 10

// trimming decodes requests after lists that are far too long were cut: see [wire.Trim].
// A request is refused for its bounds once it is decoded, and 3 MiB may be 150 MiB by then.
type trimming struct{ encoding.CodecV2 }

func trimmedRequests() grpc.ServerOption {
	return grpc.ForceServerCodecV2(trimming{encoding.GetCodecV2("proto")})
}

func (c trimming) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok || data.Len() < trimFrom {
		return c.CodecV2.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	b, _ := wire.Trim(m.ProtoReflect().Descriptor(), whole.ReadOnlyData())
	return proto.Unmarshal(b, m)
}
