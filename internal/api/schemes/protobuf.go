// SPDX-License-Identifier: Apache-2.0

package schemes

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// WithoutProtobuf serves types of our own, which have no protobuf form: clients that would take it get the next form
// they take.
type WithoutProtobuf struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s WithoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()),
		func(i runtime.SerializerInfo) bool {
			return i.MediaType == runtime.ContentTypeProtobuf
		})
}
