// SPDX-License-Identifier: Apache-2.0

// Package ranges decides what the objects about services' addresses mean: where addresses may be given from, which
// ServiceCIDR may go, and what the IPAddress of an address should be.
//
// [Set] is all ranges that there are; a [Range] is what one ServiceCIDR says. [Step] is what is to be done about the
// IPAddress object of one address.
//
// Its law: a range goes only when every address in use that lies in it lies in another one too, and of two that could
// each go because of the other, one stays. What a range was told last counts: news that come late, of an older version
// of the object, change nothing.
//
// Pure.
package ranges
