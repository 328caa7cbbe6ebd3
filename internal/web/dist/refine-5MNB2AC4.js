import{b as a,c as b,d as c}from"./chunk-3NY7GXYD.js";import"./chunk-UAN7PZ4S.js";import"./chunk-N5W5KY2I.js";export{b as Iterations,c as diffOf,a as treeBefore};
