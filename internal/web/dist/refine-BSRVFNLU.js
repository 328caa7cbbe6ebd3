import{b as a,c as b,d as c}from"./chunk-TKIJXC56.js";import"./chunk-3JRI2WRM.js";import"./chunk-N4VWT3HE.js";export{b as Iterations,c as diffOf,a as treeBefore};
