// The two functions of d3-hierarchy that the page's icicle is laid out with.
export { hierarchy, partition } from "d3-hierarchy";
