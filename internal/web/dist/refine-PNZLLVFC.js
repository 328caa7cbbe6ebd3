import{b as a,c as b,d as c}from"./chunk-YCFVCJBR.js";import"./chunk-BON4IMGG.js";import"./chunk-5NP4TL53.js";export{b as Iterations,c as diffOf,a as treeBefore};
