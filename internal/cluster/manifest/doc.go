// SPDX-License-Identifier: Apache-2.0

// Package manifest has what is installed in a cluster for debugging in it: one source, the templates of a Helm chart,
// from which the chart and the plain manifest come.
//
// [Values] says what can be chosen, [Objects] is the plain manifest, [Chart] the files of the chart. [Objects] renders
// the templates with the few functions that they may use, which mean what they mean to Helm.
//
// Its law: both say the same. The agents' account may ask for its certificate and nothing else, and only the API's
// account reads the one Secret, its own; what the objects leave out (the Secret's data, the APIService's caBundle)
// belongs to the API, and applying them again does not take it away.
//
// Pure, but for [WriteChart].
package manifest
